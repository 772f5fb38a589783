// A file may store a narrower type than the table states (type widening), another unit of time, or
// bits; whatever it is becomes the table's type first and the type that was asked for second, so
// that rounding is that of the table's values.

#include "loader/tables/numbers.h"

#include <arrow/array.h>
#include <arrow/util/decimal.h>

#include <cstring>

#include "loader/format/convert_dtype.h"

namespace tune::loader {
namespace {

/// The integer or real type in which Arrow keeps the values of `type`.
Dtype physical_dtype(const arrow::DataType& type) {
    const bool is_short = type.id() == arrow::Type::DATE32 || type.id() == arrow::Type::TIME32;
    return is_short ? Dtype::kInt32 : *number_dtype(type);
}

/// Nanoseconds of a unit; 0 for types without one.
std::int64_t unit_ns(const arrow::DataType& type) {
    std::optional<arrow::TimeUnit::type> unit;
    if (type.id() == arrow::Type::TIMESTAMP)
        unit = static_cast<const arrow::TimestampType&>(type).unit();
    if (type.id() == arrow::Type::TIME32 || type.id() == arrow::Type::TIME64)
        unit = static_cast<const arrow::TimeType&>(type).unit();
    if (type.id() == arrow::Type::DURATION)
        unit = static_cast<const arrow::DurationType&>(type).unit();
    if (!unit) return 0;
    switch (*unit) {
        case arrow::TimeUnit::SECOND: return 1'000'000'000;
        case arrow::TimeUnit::MILLI: return 1'000'000;
        case arrow::TimeUnit::MICRO: return 1'000;
        case arrow::TimeUnit::NANO: return 1;
    }
    return 0;
}

/// Times of a file's unit in the table's, rounded down.
void scale_times(std::vector<std::byte>& times, std::int64_t from_ns, std::int64_t to_ns) {
    for (std::size_t at = 0; at < times.size(); at += sizeof(std::int64_t)) {
        std::int64_t value = 0;
        std::memcpy(&value, times.data() + at, sizeof value);
        if (from_ns >= to_ns) {
            if (__builtin_mul_overflow(value, from_ns / to_ns, &value)) value = 0;
        } else {
            const std::int64_t divisor = to_ns / from_ns;
            value = value / divisor - (value % divisor < 0 ? 1 : 0);
        }
        std::memcpy(times.data() + at, &value, sizeof value);
    }
}

std::vector<std::byte> unpack_booleans(const arrow::BooleanArray& array) {
    std::vector<std::byte> values(static_cast<std::size_t>(array.length()));
    for (std::int64_t i = 0; i < array.length(); ++i)
        values[static_cast<std::size_t>(i)] = std::byte{array.Value(i)};
    return values;
}

template <class ArrayType, class Decimal>
std::vector<std::byte> decimals_as_reals(const arrow::Array& array) {
    const auto scale = static_cast<const arrow::DecimalType&>(*array.type()).scale();
    std::vector<std::byte> values(static_cast<std::size_t>(array.length()) * sizeof(double));
    for (std::int64_t i = 0; i < array.length(); ++i) {
        if (array.IsNull(i)) continue;
        const double real =
            Decimal(static_cast<const ArrayType&>(array).GetValue(i)).ToDouble(scale);
        std::memcpy(values.data() + static_cast<std::size_t>(i) * sizeof real, &real, sizeof real);
    }
    return values;
}

}  // namespace

std::shared_ptr<std::vector<std::byte>> make_bytes(std::size_t size) {
    return std::make_shared<std::vector<std::byte>>(size);
}

Numbers owned(std::shared_ptr<std::vector<std::byte>> bytes) {
    const std::byte* data = bytes->data();
    const std::size_t size = bytes->size();
    return {data, std::move(bytes), size};
}

Error type_error(const OutputColumn& column, const arrow::DataType& type) {
    return data_loss("column '" + column.info.name + "' is stored as " + type.ToString() +
                     " here, but as " + column.table.type->ToString() + " in the table");
}

Result<Numbers> numbers_of(const OutputColumn& column, const std::shared_ptr<arrow::Array>& array) {
    const auto count = static_cast<std::size_t>(array->length());
    Dtype from = column.stored;
    std::vector<std::byte> unpacked;
    const std::byte* values = nullptr;
    if (array->type_id() == arrow::Type::DECIMAL128) {
        unpacked = decimals_as_reals<arrow::Decimal128Array, arrow::Decimal128>(*array);
    } else if (array->type_id() == arrow::Type::DECIMAL256) {
        unpacked = decimals_as_reals<arrow::Decimal256Array, arrow::Decimal256>(*array);
    } else if (!number_dtype(*array->type())) {
        return type_error(column, *array->type());
    } else if (array->type_id() == arrow::Type::BOOL) {
        from = Dtype::kUint8;
        unpacked = unpack_booleans(static_cast<const arrow::BooleanArray&>(*array));
    } else {
        from = physical_dtype(*array->type());
        const auto& buffer = array->data()->buffers[1];
        if (buffer)
            values = reinterpret_cast<const std::byte*>(buffer->data()) +
                     static_cast<std::size_t>(array->offset()) * dtype_bytes(from);
    }
    if (!unpacked.empty()) values = unpacked.data();
    if (!holds_every_value(column.stored, from)) return type_error(column, *array->type());
    const std::int64_t file_ns = unit_ns(*array->type());
    std::vector<std::int64_t> shape;
    const std::int64_t table_ns = unit_ns(*element_type(column.table.type, shape));
    const bool is_scaled = file_ns != table_ns && file_ns != 0 && table_ns != 0;
    if (from == column.info.dtype && !is_scaled && unpacked.empty())
        return Numbers{values, array, count * dtype_bytes(from)};
    if (is_scaled) {
        std::vector<std::byte> scaled(count * sizeof(std::int64_t));
        converter(from, Dtype::kInt64)(values, scaled.data(), count);
        scale_times(scaled, file_ns, table_ns);
        unpacked = std::move(scaled);
        values = unpacked.data();
        from = Dtype::kInt64;
    }
    auto converted = make_bytes(count * dtype_bytes(column.info.dtype));
    converter(from, column.info.dtype)(values, converted->data(), count);
    return owned(std::move(converted));
}

}  // namespace tune::loader
