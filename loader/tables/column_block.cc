// A block points into the Arrow array wherever its values already have the form of the batch. They
// are copied when the type changes, when nulls are to be replaced, and where Arrow has no run of
// bytes for them (booleans, decimals, JSON). Texts that are stored as numbers in a dictionary stay
// numbers until a batch wants them: that saves a copy of each.

#include "loader/tables/column_block.h"

#include <arrow/array.h>
#include <arrow/extension_type.h>
#include <arrow/util/decimal.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/text/counted.h"
#include "loader/format/convert_dtype.h"
#include "loader/format/npy.h"
#include "loader/tables/json_value.h"
#include "loader/tables/numbers.h"

namespace tune::loader {
namespace {

using ArrayPtr = std::shared_ptr<arrow::Array>;

/// Payloads of a variable column as they are made.
struct Payloads {
    std::string bytes = {};
    std::vector<std::int64_t> offsets = {0};

    void add(std::string_view payload) {
        bytes += payload;
        offsets.push_back(static_cast<std::int64_t>(bytes.size()));
    }
};

Error null_error(const OutputColumn& column, std::int64_t row, const char* what) {
    return invalid_parameter("row " + std::to_string(row) + ", column '" + column.info.name +
                             "': " + what +
                             "; say what nulls become (a mask, or a value to fill in)");
}

/// Where the rows that count stand, one call each.
template <class Visit>
Result<void> for_each_row(std::int64_t length, const RowSelection& selection, Visit visit) {
    if (selection.rows) {
        for (const std::uint32_t row : *selection.rows) TUNE_TRY_VOID(visit(std::int64_t{row}));
        return {};
    }
    for (std::int64_t row = 0; row < length; ++row) TUNE_TRY_VOID(visit(row));
    return {};
}

/// Bytes of 1 and 0 for values and nulls; an empty block when there are none. Errors: a null that
/// was not asked for.
Result<void> add_validity(const OutputColumn& column, const arrow::Array& array,
                          const RowSelection& selection, ColumnBlock& block) {
    block.has_mask = column.info.has_mask;
    if (array.null_count() == 0) return {};
    if (column.options.nulls == Nulls::kRefuse)
        return for_each_row(array.length(), selection, [&](std::int64_t row) -> Result<void> {
            if (array.IsValid(row)) return {};
            return null_error(column, row, "a null");
        });
    auto valid =
        std::make_shared<std::vector<std::uint8_t>>(static_cast<std::size_t>(array.length()));
    for (std::int64_t row = 0; row < array.length(); ++row)
        (*valid)[static_cast<std::size_t>(row)] = array.IsValid(row);
    block.valid = valid->data();
    block.bytes += valid->size();
    block.owners.push_back(std::move(valid));
    return {};
}

/// One element of info.dtype to fill in; zeros when nulls are masked.
Result<std::string> fill_element(const OutputColumn& column) {
    std::string element;
    if (column.options.nulls == Nulls::kFill) {
        Result<void> encoded = append_element(
            column.info.dtype, Value(std::string_view(column.options.fill)), element);
        if (!encoded)
            return invalid_parameter("column '" + column.info.name +
                                     "', the value to fill in: " + encoded.error().message);
    }
    element.resize(dtype_bytes(column.info.dtype));
    return element;
}

/// Replaces the values of null rows, in a copy, when there are some.
Result<void> fill_nulls(const OutputColumn& column, const arrow::Array& array, Numbers& numbers,
                        std::size_t value_bytes) {
    if (array.null_count() == 0 || column.options.nulls == Nulls::kRefuse) return {};
    TUNE_TRY(element, fill_element(column));
    auto filled = make_bytes(numbers.bytes);
    std::memcpy(filled->data(), numbers.data, numbers.bytes);
    for (std::int64_t row = 0; row < array.length(); ++row) {
        if (array.IsValid(row)) continue;
        std::byte* at = filled->data() + static_cast<std::size_t>(row) * value_bytes;
        for (std::size_t i = 0; i < value_bytes; i += element.size())
            std::memcpy(at + i, element.data(), element.size());
    }
    numbers = owned(std::move(filled));
    return {};
}

ColumnBlock fixed_block(const OutputColumn& column, Numbers numbers) {
    ColumnBlock block;
    block.data = numbers.data;
    block.value_bytes = block.stride = column.info.sample_bytes;
    block.bytes = numbers.bytes;
    block.owners.push_back(std::move(numbers.owner));
    return block;
}

Result<ColumnBlock> number_block(const OutputColumn& column, const ArrayPtr& array,
                                 const RowSelection& selection) {
    TUNE_TRY(numbers, numbers_of(column, array));
    TUNE_TRY_VOID(fill_nulls(column, *array, numbers, column.info.sample_bytes));
    ColumnBlock block = fixed_block(column, std::move(numbers));
    TUNE_TRY_VOID(add_validity(column, *array, selection, block));
    return block;
}

/// The flat elements beneath lists of a fixed size.
ArrayPtr flat_elements(ArrayPtr array) {
    while (array->type_id() == arrow::Type::FIXED_SIZE_LIST) {
        const auto& list = static_cast<const arrow::FixedSizeListArray&>(*array);
        array = list.values()->Slice(list.value_offset(0), list.length() * list.value_length());
    }
    return array;
}

/// Where the elements of each row lie among those of `elements`.
struct ListView {
    ArrayPtr elements;
    const std::int32_t* offsets32 = nullptr;
    const std::int64_t* offsets64 = nullptr;
    std::shared_ptr<const std::vector<std::int64_t>> made_offsets = {};

    [[nodiscard]] std::int64_t offset(std::int64_t row) const {
        return offsets32 ? offsets32[row] : offsets64[row];
    }
};

std::optional<ListView> list_view(const ArrayPtr& array) {
    if (array->type_id() == arrow::Type::LIST) {
        const auto& list = static_cast<const arrow::ListArray&>(*array);
        return ListView{list.values(), list.raw_value_offsets(), nullptr, {}};
    }
    if (array->type_id() == arrow::Type::LARGE_LIST) {
        const auto& list = static_cast<const arrow::LargeListArray&>(*array);
        return ListView{list.values(), nullptr, list.raw_value_offsets(), {}};
    }
    // A file may fix the size of lists which the table leaves open.
    if (array->type_id() == arrow::Type::FIXED_SIZE_LIST) {
        const auto& list = static_cast<const arrow::FixedSizeListArray&>(*array);
        auto offsets = std::make_shared<std::vector<std::int64_t>>();
        for (std::int64_t row = 0; row <= list.length(); ++row)
            offsets->push_back(list.value_offset(row));
        const std::int64_t* data = offsets->data();
        return ListView{list.values(), nullptr, data, std::move(offsets)};
    }
    return std::nullopt;
}

/// Whether a null among the elements of lists would be an error.
bool checks_elements(const OutputColumn& column, const arrow::Array& elements) {
    return elements.null_count() > 0 && column.options.nulls != Nulls::kFill;
}

/// Errors: a null among the elements `begin`..`end` of a row that counts.
Result<void> check_elements(const OutputColumn& column, const arrow::Array& elements,
                            std::int64_t begin, std::int64_t end, std::int64_t row) {
    for (std::int64_t i = begin; i < end; ++i)
        if (elements.IsNull(i)) return null_error(column, row, "a null in a list");
    return {};
}

Result<ColumnBlock> list_block(const OutputColumn& column, const ArrayPtr& array,
                               const RowSelection& selection) {
    const std::optional<ListView> list = list_view(array);
    if (!list) return type_error(column, *array->type());
    const ArrayPtr flat = flat_elements(list->elements);
    const std::int64_t per_item =
        list->elements->length() == 0 ? 1 : flat->length() / list->elements->length();
    if (checks_elements(column, *flat))
        TUNE_TRY_VOID(
            for_each_row(array->length(), selection, [&](std::int64_t row) -> Result<void> {
                if (array->IsNull(row)) return {};
                return check_elements(column, *flat, list->offset(row) * per_item,
                                      list->offset(row + 1) * per_item, row);
            }));
    TUNE_TRY(numbers, numbers_of(column, flat));
    TUNE_TRY_VOID(fill_nulls(column, *flat, numbers, dtype_bytes(column.info.dtype)));
    ColumnBlock block;
    block.is_fixed = false;
    block.data = numbers.data;
    block.offsets32 = list->offsets32;
    block.offsets64 = list->offsets64;
    block.unit = static_cast<std::size_t>(per_item) * dtype_bytes(column.info.dtype);
    block.bytes = numbers.bytes + static_cast<std::size_t>(array->length()) * 8;
    block.owners = {std::move(numbers.owner), array, list->made_offsets};
    TUNE_TRY_VOID(add_validity(column, *array, selection, block));
    return block;
}

/// Rows of a list that all have the stated number of elements, one after the other.
Result<Numbers> gather_lists(const OutputColumn& column, const ArrayPtr& array,
                             const RowSelection& selection) {
    const std::optional<ListView> list = list_view(array);
    if (!list) return type_error(column, *array->type());
    const ArrayPtr flat = flat_elements(list->elements);
    const std::int64_t per_item =
        list->elements->length() == 0 ? 1 : flat->length() / list->elements->length();
    TUNE_TRY(numbers, numbers_of(column, flat));
    TUNE_TRY_VOID(fill_nulls(column, *flat, numbers, dtype_bytes(column.info.dtype)));
    const std::size_t width = dtype_bytes(column.info.dtype);
    const auto wanted = static_cast<std::int64_t>(column.info.sample_bytes / width);
    const bool checks = checks_elements(column, *flat);
    auto rows = make_bytes(static_cast<std::size_t>(array->length()) * column.info.sample_bytes);
    const Result<void> visited =
        for_each_row(array->length(), selection, [&](std::int64_t row) -> Result<void> {
            if (array->IsNull(row)) return {};
            const std::int64_t begin = list->offset(row) * per_item;
            const std::int64_t end = list->offset(row + 1) * per_item;
            if (end - begin != wanted)
                return invalid_parameter("row " + std::to_string(row) + ", column '" +
                                         column.info.name +
                                         "': " + counted(end - begin, "element") +
                                         ", but its shape takes " + std::to_string(wanted));
            if (checks) TUNE_TRY_VOID(check_elements(column, *flat, begin, end, row));
            std::memcpy(rows->data() + static_cast<std::size_t>(row) * column.info.sample_bytes,
                        numbers.data + static_cast<std::size_t>(begin) * width,
                        column.info.sample_bytes);
            return {};
        });
    if (!visited) return visited.error();
    return owned(std::move(rows));
}

Result<ColumnBlock> array_block(const OutputColumn& column, const ArrayPtr& array,
                                const RowSelection& selection) {
    Numbers numbers;
    if (array->type_id() == arrow::Type::FIXED_SIZE_LIST) {
        const ArrayPtr flat = flat_elements(array);
        const auto elements =
            static_cast<std::int64_t>(column.info.sample_bytes / dtype_bytes(column.info.dtype));
        if (flat->length() != array->length() * elements) return type_error(column, *array->type());
        if (checks_elements(column, *flat))
            TUNE_TRY_VOID(
                for_each_row(array->length(), selection, [&](std::int64_t row) -> Result<void> {
                    if (array->IsNull(row)) return {};
                    return check_elements(column, *flat, row * elements, (row + 1) * elements, row);
                }));
        TUNE_TRY(flat_numbers, numbers_of(column, flat));
        TUNE_TRY_VOID(fill_nulls(column, *flat, flat_numbers, dtype_bytes(column.info.dtype)));
        numbers = std::move(flat_numbers);
    } else {
        TUNE_TRY(gathered, gather_lists(column, array, selection));
        numbers = std::move(gathered);
    }
    TUNE_TRY_VOID(fill_nulls(column, *array, numbers, column.info.sample_bytes));
    ColumnBlock block = fixed_block(column, std::move(numbers));
    TUNE_TRY_VOID(add_validity(column, *array, selection, block));
    return block;
}

ColumnBlock payload_block(Payloads payloads) {
    auto kept = std::make_shared<const Payloads>(std::move(payloads));
    ColumnBlock block;
    block.is_fixed = false;
    block.data = reinterpret_cast<const std::byte*>(kept->bytes.data());
    block.offsets64 = kept->offsets.data();
    block.bytes = kept->bytes.size() + kept->offsets.size() * sizeof(std::int64_t);
    block.owners.push_back(std::move(kept));
    return block;
}

/// Variable payloads made row by row; null rows get the fill value, or nothing.
template <class PayloadOf>
Result<ColumnBlock> made_block(const OutputColumn& column, const ArrayPtr& array,
                               const RowSelection& selection, PayloadOf payload_of) {
    Payloads payloads;
    std::int64_t made = 0;
    // Rows that do not count are left empty: they may hold what cannot be given out.
    const auto skip_to = [&](std::int64_t row) {
        for (; made < row; ++made) payloads.add({});
    };
    const Result<void> visited =
        for_each_row(array->length(), selection, [&](std::int64_t row) -> Result<void> {
            skip_to(row);
            ++made;
            if (array->IsNull(row)) {
                payloads.add(column.options.fill);
                return {};
            }
            Result<std::string> payload = payload_of(row);
            if (!payload) {
                Error error = std::move(payload).error();
                error.message = "row " + std::to_string(row) + ", column '" + column.info.name +
                                "': " + error.message;
                return error;
            }
            payloads.add(*payload);
            return {};
        });
    if (!visited) return visited.error();
    skip_to(array->length());
    ColumnBlock block = payload_block(std::move(payloads));
    TUNE_TRY_VOID(add_validity(column, *array, selection, block));
    return block;
}

template <class ArrayType>
ColumnBlock viewed_block(const ArrayPtr& array) {
    const auto& texts = static_cast<const ArrayType&>(*array);
    ColumnBlock block;
    block.is_fixed = false;
    block.data = reinterpret_cast<const std::byte*>(texts.raw_data());
    if constexpr (sizeof(typename ArrayType::offset_type) == 4)
        block.offsets32 = texts.raw_value_offsets();
    else
        block.offsets64 = texts.raw_value_offsets();
    block.bytes = static_cast<std::size_t>(texts.total_values_length()) +
                  static_cast<std::size_t>(array->length()) * sizeof(std::int32_t);
    block.owners.push_back(array);
    return block;
}

/// The bytes of one value of text, of a binary type, or of a dictionary of either.
Result<std::string> bytes_at(const OutputColumn& column, const arrow::Array& array,
                             std::int64_t row) {
    switch (array.type_id()) {
        case arrow::Type::STRING:
        case arrow::Type::BINARY:
            return std::string(static_cast<const arrow::BinaryArray&>(array).GetView(row));
        case arrow::Type::LARGE_STRING:
        case arrow::Type::LARGE_BINARY:
            return std::string(static_cast<const arrow::LargeBinaryArray&>(array).GetView(row));
        case arrow::Type::STRING_VIEW:
        case arrow::Type::BINARY_VIEW:
            return std::string(static_cast<const arrow::BinaryViewArray&>(array).GetView(row));
        case arrow::Type::FIXED_SIZE_BINARY:
            return std::string(static_cast<const arrow::FixedSizeBinaryArray&>(array).GetView(row));
        case arrow::Type::DICTIONARY: {
            const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
            return bytes_at(column, *coded.dictionary(), coded.GetValueIndex(row));
        }
        case arrow::Type::NA: return std::string();
        default: return type_error(column, *array.type());
    }
}

/// Texts as numbers in a dictionary of texts, as they are stored; nothing for a dictionary of
/// another form. Errors: kDataLoss for a number that the dictionary lacks.
Result<std::optional<ColumnBlock>> coded_block(const OutputColumn& column, const ArrayPtr& array,
                                               const RowSelection& selection) {
    const auto& coded = static_cast<const arrow::DictionaryArray&>(*array);
    const ArrayPtr& texts = coded.dictionary();
    const bool is_short =
        texts->type_id() == arrow::Type::STRING || texts->type_id() == arrow::Type::BINARY;
    if (!is_short || texts->null_count() > 0 || coded.indices()->type_id() != arrow::Type::INT32)
        return std::optional<ColumnBlock>();
    ColumnBlock block = viewed_block<arrow::BinaryArray>(texts);
    const std::int32_t* const stored = coded.data()->GetValues<std::int32_t>(1);
    const auto rows = static_cast<std::size_t>(array->length());
    auto codes = std::make_shared<std::vector<std::int32_t>>(stored, stored + rows);
    if (array->null_count() > 0) {
        // One more text, an empty one, for nulls: what stands in their place may be any number.
        auto offsets = std::make_shared<std::vector<std::int32_t>>(1);
        if (texts->length() > 0)
            offsets->assign(block.offsets32, block.offsets32 + texts->length() + 1);
        offsets->push_back(offsets->back());
        for (std::size_t row = 0; row < rows; ++row)
            if (array->IsNull(static_cast<std::int64_t>(row)))
                (*codes)[row] = static_cast<std::int32_t>(texts->length());
        block.offsets32 = offsets->data();
        block.owners.push_back(std::move(offsets));
    }
    const auto limit =
        static_cast<std::uint32_t>(texts->length() + (array->null_count() > 0 ? 1 : 0));
    if (std::ranges::any_of(*codes, [limit](std::int32_t code) {
            return static_cast<std::uint32_t>(code) >= limit;
        }))
        return data_loss("column '" + column.info.name + "' names a text that its dictionary of " +
                         counted(texts->length(), "text") + " lacks");
    block.codes = codes->data();
    block.bytes += rows * sizeof(std::int32_t);
    block.owners.push_back(std::move(codes));
    TUNE_TRY_VOID(add_validity(column, *array, selection, block));
    return std::optional(std::move(block));
}

Result<ColumnBlock> bytes_block(const OutputColumn& column, const ArrayPtr& array,
                                const RowSelection& selection) {
    const bool fills = array->null_count() > 0 && !column.options.fill.empty();
    const arrow::Type::type type = array->type_id();
    if (type == arrow::Type::DICTIONARY && !fills) {
        TUNE_TRY(coded, coded_block(column, array, selection));
        if (coded) return *std::move(coded);
    }
    const bool is_short = type == arrow::Type::STRING || type == arrow::Type::BINARY;
    const bool is_long = type == arrow::Type::LARGE_STRING || type == arrow::Type::LARGE_BINARY;
    if (fills || !(is_short || is_long))
        return made_block(column, array, selection,
                          [&](std::int64_t row) { return bytes_at(column, *array, row); });
    ColumnBlock block = is_short ? viewed_block<arrow::BinaryArray>(array)
                                 : viewed_block<arrow::LargeBinaryArray>(array);
    TUNE_TRY_VOID(add_validity(column, *array, selection, block));
    return block;
}

Result<std::string> decimal_text(const OutputColumn& column, const arrow::Array& array,
                                 std::int64_t row) {
    if (array.type_id() == arrow::Type::DECIMAL128)
        return static_cast<const arrow::Decimal128Array&>(array).FormatValue(row);
    if (array.type_id() == arrow::Type::DECIMAL256)
        return static_cast<const arrow::Decimal256Array&>(array).FormatValue(row);
    return type_error(column, *array.type());
}

/// The array in a .npy or .npz file; `unpacked` keeps what a .npz held.
Result<ArrayView> npy_array(std::string_view file, std::string& unpacked) {
    const auto bytes = std::as_bytes(std::span(file.data(), file.size()));
    if (!file.starts_with("PK")) return parse_npy(bytes);
    TUNE_TRY(member, npz_member(bytes, "arr"));
    unpacked = std::move(member);
    return parse_npy(std::as_bytes(std::span(unpacked.data(), unpacked.size())));
}

Result<std::string> npy_payload(const OutputColumn& column, const std::string& file) {
    std::string unpacked;
    TUNE_TRY(array, npy_array(file, unpacked));
    if (!column.info.fixed) {
        std::string payload;
        TUNE_TRY_VOID(encode({EncodingKind::kNdarray, "ndarray"}, array, payload));
        return payload;
    }
    if (array.shape != column.info.shape)
        return invalid_parameter("its array has another shape than the one that was stated");
    const auto& options = column.options;
    if (!options.allows_narrowing && !holds_every_value(column.info.dtype, array.dtype))
        return invalid_parameter("its array holds " + std::string(dtype_name(array.dtype)) +
                                 ", which " + std::string(dtype_name(column.info.dtype)) +
                                 " does not hold; state that type, or allow narrowing");
    std::string payload(column.info.sample_bytes, '\0');
    converter(array.dtype, column.info.dtype)(array.bytes.data(),
                                              reinterpret_cast<std::byte*>(payload.data()),
                                              array.bytes.size() / dtype_bytes(array.dtype));
    return payload;
}

Result<ColumnBlock> npy_block(const OutputColumn& column, const ArrayPtr& array,
                              const RowSelection& selection) {
    TUNE_TRY(block,
             made_block(column, array, selection, [&](std::int64_t row) -> Result<std::string> {
                 TUNE_TRY(file, bytes_at(column, *array, row));
                 return npy_payload(column, file);
             }));
    if (!column.info.fixed) return block;
    // Rows that do not count, and nulls, made no payload: spread the others to their places.
    const std::size_t size = column.info.sample_bytes;
    const auto rows = static_cast<std::size_t>(array->length());
    auto spread = make_bytes(rows * size);
    for (std::size_t row = 0; row < rows; ++row)
        if (block.offsets64[row + 1] - block.offsets64[row] == static_cast<std::int64_t>(size))
            std::memcpy(spread->data() + row * size, block.data + block.offsets64[row], size);
    ColumnBlock fixed = fixed_block(column, owned(std::move(spread)));
    fixed.valid = block.valid;
    fixed.has_mask = block.has_mask;
    fixed.bytes += block.bytes;
    fixed.owners.insert(fixed.owners.end(), block.owners.begin(), block.owners.end());
    return fixed;
}

}  // namespace

Result<ColumnBlock> column_block(const OutputColumn& column, const ArrayPtr& array,
                                 const RowSelection& selection) {
    if (array->type_id() == arrow::Type::EXTENSION)
        return column_block(column, static_cast<const arrow::ExtensionArray&>(*array).storage(),
                            selection);
    switch (column.kind) {
        case ColumnKind::kNumber: return number_block(column, array, selection);
        case ColumnKind::kFixedArray: return array_block(column, array, selection);
        case ColumnKind::kNumberList: return list_block(column, array, selection);
        case ColumnKind::kBytes: return bytes_block(column, array, selection);
        case ColumnKind::kNpy: return npy_block(column, array, selection);
        case ColumnKind::kDecimalText:
            return made_block(column, array, selection,
                              [&](std::int64_t row) { return decimal_text(column, *array, row); });
        case ColumnKind::kJsonText:
            return made_block(column, array, selection,
                              [&](std::int64_t row) -> Result<std::string> {
                                  return to_text(json_value(*array, row));
                              });
    }
    return type_error(column, *array->type());
}

Result<ColumnBlock> constant_block(const OutputColumn& column,
                                   const std::optional<std::string>& text) {
    if (!text && column.options.nulls == Nulls::kRefuse)
        return null_error(column, 0, "a null in every row");
    auto value = std::make_shared<std::string>();
    if (!column.info.fixed) {
        *value = text ? *text : column.options.fill;
    } else if (text) {
        Result<void> parsed =
            append_element(column.info.dtype, Value(std::string_view(*text)), *value);
        if (!parsed) return parsed.error();
    } else {
        TUNE_TRY(element, fill_element(column));
        while (value->size() < column.info.sample_bytes) *value += element;
    }
    ColumnBlock block;
    block.is_fixed = column.info.fixed;
    block.data = reinterpret_cast<const std::byte*>(value->data());
    block.value_bytes = value->size();
    block.has_mask = column.info.has_mask;
    block.is_all_null = !text;
    block.owners.push_back(std::move(value));
    return block;
}

}  // namespace tune::loader
