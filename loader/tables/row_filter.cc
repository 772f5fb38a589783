// A row group is left out only when its statistics exclude every row: where their order is not that
// of the values (unsigned numbers, decimals), where the unit differs or NaN may hide, they are not
// asked. What remains is compared row by row.

#include "loader/tables/row_filter.h"

#include <arrow/array.h>
#include <parquet/statistics.h>
#include <parquet/types.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "loader/format/mds/encoding.h"
#include "loader/rows/time_value.h"

namespace tune::loader {
namespace {

enum class Comparable { kNothing, kInteger, kReal, kText, kDate, kTime };

Comparable comparable(const arrow::DataType& type) {
    switch (type.id()) {
        case arrow::Type::HALF_FLOAT:
        case arrow::Type::FLOAT:
        case arrow::Type::DOUBLE: return Comparable::kReal;
        case arrow::Type::STRING:
        case arrow::Type::LARGE_STRING:
        case arrow::Type::BINARY:
        case arrow::Type::LARGE_BINARY:
        case arrow::Type::STRING_VIEW:
        case arrow::Type::BINARY_VIEW: return Comparable::kText;
        case arrow::Type::DATE32: return Comparable::kDate;
        case arrow::Type::TIMESTAMP: return Comparable::kTime;
        case arrow::Type::UINT64: return Comparable::kReal;  // beyond int64 a real is near enough
        case arrow::Type::DICTIONARY:
            return comparable(*static_cast<const arrow::DictionaryType&>(type).value_type());
        default: return number_dtype(type) ? Comparable::kInteger : Comparable::kNothing;
    }
}

std::int64_t timestamp_unit_ns(const arrow::DataType& type) {
    switch (static_cast<const arrow::TimestampType&>(type).unit()) {
        case arrow::TimeUnit::SECOND: return 1'000'000'000;
        case arrow::TimeUnit::MILLI: return 1'000'000;
        case arrow::TimeUnit::MICRO: return 1'000;
        case arrow::TimeUnit::NANO: return 1;
    }
    return 1;
}

std::optional<FilterValue> bind_value(const FilterValue& value, const arrow::DataType& type) {
    const Comparable kind = comparable(type);
    const auto* text = std::get_if<std::string>(&value);
    if (kind == Comparable::kText) return text ? std::optional(value) : std::nullopt;
    if (!text) return kind == Comparable::kNothing ? std::nullopt : std::optional(value);
    if (kind == Comparable::kDate) {
        const auto days = parse_date(*text);
        return days ? std::optional<FilterValue>(*days) : std::nullopt;
    }
    if (kind == Comparable::kTime) {
        const auto time_ns = parse_time_ns(*text);
        return time_ns ? std::optional<FilterValue>(*time_ns / timestamp_unit_ns(type))
                       : std::nullopt;
    }
    return std::nullopt;
}

template <class ArrayType>
FilterValue number_value(const arrow::Array& array, std::int64_t row) {
    const auto value = static_cast<const ArrayType&>(array).Value(row);
    if constexpr (std::is_floating_point_v<decltype(value)>)
        return static_cast<double>(value);
    else
        return static_cast<std::int64_t>(value);
}

/// Nothing for a null.
std::optional<FilterValue> value_at(const arrow::Array& array, std::int64_t row) {
    if (array.IsNull(row)) return std::nullopt;
    switch (array.type_id()) {
        case arrow::Type::BOOL:
            return FilterValue(static_cast<const arrow::BooleanArray&>(array).Value(row));
        case arrow::Type::UINT8: return number_value<arrow::UInt8Array>(array, row);
        case arrow::Type::INT8: return number_value<arrow::Int8Array>(array, row);
        case arrow::Type::UINT16: return number_value<arrow::UInt16Array>(array, row);
        case arrow::Type::INT16: return number_value<arrow::Int16Array>(array, row);
        case arrow::Type::UINT32: return number_value<arrow::UInt32Array>(array, row);
        case arrow::Type::INT32: return number_value<arrow::Int32Array>(array, row);
        case arrow::Type::INT64: return number_value<arrow::Int64Array>(array, row);
        case arrow::Type::DATE32: return number_value<arrow::Date32Array>(array, row);
        case arrow::Type::DATE64: return number_value<arrow::Date64Array>(array, row);
        case arrow::Type::TIME32: return number_value<arrow::Time32Array>(array, row);
        case arrow::Type::TIME64: return number_value<arrow::Time64Array>(array, row);
        case arrow::Type::TIMESTAMP: return number_value<arrow::TimestampArray>(array, row);
        case arrow::Type::DURATION: return number_value<arrow::DurationArray>(array, row);
        case arrow::Type::FLOAT: return number_value<arrow::FloatArray>(array, row);
        case arrow::Type::DOUBLE: return number_value<arrow::DoubleArray>(array, row);
        case arrow::Type::UINT64:
            return FilterValue(
                static_cast<double>(static_cast<const arrow::UInt64Array&>(array).Value(row)));
        case arrow::Type::HALF_FLOAT:
            return FilterValue(
                double_from_half(static_cast<const arrow::HalfFloatArray&>(array).Value(row)));
        case arrow::Type::STRING:
        case arrow::Type::BINARY:
            return FilterValue(
                std::string(static_cast<const arrow::BinaryArray&>(array).GetView(row)));
        case arrow::Type::LARGE_STRING:
        case arrow::Type::LARGE_BINARY:
            return FilterValue(
                std::string(static_cast<const arrow::LargeBinaryArray&>(array).GetView(row)));
        case arrow::Type::STRING_VIEW:
        case arrow::Type::BINARY_VIEW:
            return FilterValue(
                std::string(static_cast<const arrow::BinaryViewArray&>(array).GetView(row)));
        case arrow::Type::DICTIONARY: {
            const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
            return value_at(*coded.dictionary(), coded.GetValueIndex(row));
        }
        default: return std::nullopt;
    }
}

bool null_matches(const Filter& filter) {
    return filter.op == FilterOp::kNotIn;
}

void keep_matching(const Filter& filter, const FilterColumn& column,
                   std::vector<std::uint8_t>& kept) {
    if (!column.array) {
        const bool matches_all =
            column.constant ? matches(filter, *column.constant) : null_matches(filter);
        if (!matches_all) std::fill(kept.begin(), kept.end(), std::uint8_t{0});
        return;
    }
    for (std::size_t row = 0; row < kept.size(); ++row) {
        if (!kept[row]) continue;
        const auto value = value_at(*column.array, static_cast<std::int64_t>(row));
        kept[row] = value ? matches(filter, *value) : null_matches(filter);
    }
}

template <class ParquetType>
ValueRange range_of(const parquet::Statistics& statistics) {
    const auto& typed = static_cast<const parquet::TypedStatistics<ParquetType>&>(statistics);
    if constexpr (std::is_floating_point_v<typename ParquetType::c_type>)
        return {static_cast<double>(typed.min()), static_cast<double>(typed.max()), true};
    else
        return {static_cast<std::int64_t>(typed.min()), static_cast<std::int64_t>(typed.max())};
}

std::string text_of(const parquet::ByteArray& bytes) {
    return {reinterpret_cast<const char*>(bytes.ptr), bytes.len};
}

bool has_unit_of(const parquet::LogicalType& logical, const arrow::DataType& type) {
    if (type.id() != arrow::Type::TIMESTAMP) return false;
    switch (static_cast<const parquet::TimestampLogicalType&>(logical).time_unit()) {
        case parquet::LogicalType::TimeUnit::MILLIS: return timestamp_unit_ns(type) == 1'000'000;
        case parquet::LogicalType::TimeUnit::MICROS: return timestamp_unit_ns(type) == 1'000;
        case parquet::LogicalType::TimeUnit::NANOS: return timestamp_unit_ns(type) == 1;
        default: return false;
    }
}

/// Whether the order of the statistics is that of the values as a filter sees them.
bool has_plain_order(const parquet::ColumnDescriptor& column, const arrow::DataType& type) {
    const auto& logical = column.logical_type();
    if (!logical || logical->is_none()) return true;
    if (logical->is_int()) return static_cast<const parquet::IntLogicalType&>(*logical).is_signed();
    if (logical->is_timestamp()) return has_unit_of(*logical, type);
    return logical->is_string() || logical->is_date();
}

}  // namespace

Result<Filters> bind_filters(const Filters& filters, const std::vector<TableColumn>& columns) {
    Filters bound = filters;
    for (std::vector<Filter>& alternative : bound)
        for (Filter& filter : alternative) {
            const auto column = std::find_if(
                columns.begin(), columns.end(),
                [&](const TableColumn& candidate) { return candidate.name == filter.column; });
            if (column == columns.end())
                return invalid_parameter("the filter '" + filter_text(filter) +
                                         "' names a column that does not exist");
            const bool is_set = filter.op == FilterOp::kIn || filter.op == FilterOp::kNotIn;
            if (!is_set && filter.values.size() != 1)
                return invalid_parameter("the filter on '" + filter.column + "' needs one value");
            for (FilterValue& value : filter.values) {
                std::optional<FilterValue> fitting = bind_value(value, *column->type);
                if (!fitting)
                    return invalid_parameter("the filter '" + filter_text(filter) +
                                             "' does not fit its column, which is " +
                                             column->type->ToString());
                value = *std::move(fitting);
            }
        }
    return bound;
}

std::optional<FilterValue> partition_value(const arrow::DataType& type, const std::string& text) {
    const Comparable kind = comparable(type);
    if (kind == Comparable::kInteger || kind == Comparable::kReal) {
        if (type.id() == arrow::Type::BOOL && (text == "true" || text == "false"))
            return FilterValue(text == "true");
        std::int64_t integer = 0;
        const char* const end = text.data() + text.size();
        auto parsed = std::from_chars(text.data(), end, integer);
        if (parsed.ec == std::errc{} && parsed.ptr == end) return FilterValue(integer);
        double real = 0;
        parsed = std::from_chars(text.data(), end, real);
        if (parsed.ec == std::errc{} && parsed.ptr == end) return FilterValue(real);
        return std::nullopt;
    }
    return bind_value(FilterValue(text), type);
}

namespace {

std::optional<ValueRange> stated_range(const parquet::RowGroupMetaData& group, int leaf,
                                       const arrow::DataType& type) {
    const auto chunk = group.ColumnChunk(leaf);
    const parquet::ColumnDescriptor& column = *group.schema()->Column(leaf);
    if (!chunk->is_stats_set() || !has_plain_order(column, type)) return std::nullopt;
    const std::shared_ptr<parquet::Statistics> statistics = chunk->statistics();
    if (!statistics || !statistics->HasMinMax()) return std::nullopt;
    switch (column.physical_type()) {
        case parquet::Type::BOOLEAN: return range_of<parquet::BooleanType>(*statistics);
        case parquet::Type::INT32: return range_of<parquet::Int32Type>(*statistics);
        case parquet::Type::INT64: return range_of<parquet::Int64Type>(*statistics);
        case parquet::Type::FLOAT: return range_of<parquet::FloatType>(*statistics);
        case parquet::Type::DOUBLE: return range_of<parquet::DoubleType>(*statistics);
        case parquet::Type::BYTE_ARRAY: {
            const auto& typed = static_cast<const parquet::ByteArrayStatistics&>(*statistics);
            return ValueRange{text_of(typed.min()), text_of(typed.max())};
        }
        default: return std::nullopt;
    }
}

}  // namespace

std::optional<ValueRange> value_range(const parquet::RowGroupMetaData& group, int leaf,
                                      const arrow::DataType& type) {
    try {
        return stated_range(group, leaf, type);
    } catch (const std::exception&) {
        return std::nullopt;  // damaged statistics rule nothing out; the rows are looked at
    }
}

bool may_match_any(const Filters& filters, const MayMatch& may_match) {
    if (filters.empty()) return true;
    return std::any_of(filters.begin(), filters.end(), [&](const std::vector<Filter>& filter) {
        return std::all_of(filter.begin(), filter.end(), may_match);
    });
}

std::vector<std::uint32_t> matching_rows(const Filters& filters, std::int64_t row_count,
                                         const FindColumn& find) {
    const auto count = static_cast<std::size_t>(row_count);
    std::vector<std::uint8_t> matching(count, filters.empty() ? 1 : 0);
    std::vector<std::uint8_t> kept;
    for (const std::vector<Filter>& alternative : filters) {
        kept.assign(count, 1);
        for (const Filter& filter : alternative) keep_matching(filter, find(filter.column), kept);
        for (std::size_t row = 0; row < count; ++row) matching[row] |= kept[row];
    }
    std::vector<std::uint32_t> rows;
    for (std::size_t row = 0; row < count; ++row)
        if (matching[row]) rows.push_back(static_cast<std::uint32_t>(row));
    return rows;
}

}  // namespace tune::loader
