// For values that have no flat form in a batch. One switch over the types; nested ones call it
// again, no deeper than the type itself is.

#include "loader/tables/json_value.h"

#include <arrow/array.h>
#include <arrow/extension_type.h>
#include <arrow/scalar.h>
#include <arrow/util/decimal.h>

#include <nlohmann/json.hpp>

#include "base/text/base64.h"
#include "loader/format/mds/encoding.h"

namespace tune::loader {
namespace {

Json list_json(const arrow::Array& values, std::int64_t begin, std::int64_t end) {
    Json list = Json::array();
    for (std::int64_t i = begin; i < end; ++i) list.push_back(json_value(values, i));
    return list;
}

Json map_json(const arrow::MapArray& map, std::int64_t row) {
    const std::int64_t begin = map.value_offset(row);
    const std::int64_t end = map.value_offset(row + 1);
    const auto* text_keys = dynamic_cast<const arrow::StringArray*>(map.keys().get());
    Json json = text_keys ? Json::object() : Json::array();
    for (std::int64_t i = begin; i < end; ++i) {
        if (text_keys)
            json[text_keys->GetString(i)] = json_value(*map.items(), i);
        else
            json.push_back({json_value(*map.keys(), i), json_value(*map.items(), i)});
    }
    return json;
}

Json struct_json(const arrow::StructArray& array, std::int64_t row) {
    Json json = Json::object();
    for (int i = 0; i < array.num_fields(); ++i)
        json[array.struct_type()->field(i)->name()] = json_value(*array.field(i), row);
    return json;
}

template <class ArrayType>
Json number_json(const arrow::Array& array, std::int64_t row) {
    const auto value = static_cast<const ArrayType&>(array).Value(row);
    if constexpr (std::is_floating_point_v<decltype(value)>)
        return json_number(static_cast<double>(value));
    else
        return value;
}

template <class ArrayType>
Json text_json(const arrow::Array& array, std::int64_t row) {
    return std::string(static_cast<const ArrayType&>(array).GetView(row));
}

template <class ArrayType>
Json bytes_json(const arrow::Array& array, std::int64_t row) {
    return base64(static_cast<const ArrayType&>(array).GetView(row));
}

Json nested_json(const arrow::Array& array, std::int64_t row) {
    switch (array.type_id()) {
        case arrow::Type::LIST: {
            const auto& list = static_cast<const arrow::ListArray&>(array);
            return list_json(*list.values(), list.value_offset(row), list.value_offset(row + 1));
        }
        case arrow::Type::LARGE_LIST: {
            const auto& list = static_cast<const arrow::LargeListArray&>(array);
            return list_json(*list.values(), list.value_offset(row), list.value_offset(row + 1));
        }
        case arrow::Type::FIXED_SIZE_LIST: {
            const auto& list = static_cast<const arrow::FixedSizeListArray&>(array);
            return list_json(*list.values(), list.value_offset(row), list.value_offset(row + 1));
        }
        case arrow::Type::MAP: return map_json(static_cast<const arrow::MapArray&>(array), row);
        case arrow::Type::STRUCT:
            return struct_json(static_cast<const arrow::StructArray&>(array), row);
        case arrow::Type::DICTIONARY: {
            const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
            return json_value(*coded.dictionary(), coded.GetValueIndex(row));
        }
        case arrow::Type::EXTENSION:
            return json_value(*static_cast<const arrow::ExtensionArray&>(array).storage(), row);
        case arrow::Type::DECIMAL128:
            return static_cast<const arrow::Decimal128Array&>(array).FormatValue(row);
        case arrow::Type::DECIMAL256:
            return static_cast<const arrow::Decimal256Array&>(array).FormatValue(row);
        default: {
            const auto scalar = array.GetScalar(row);
            return scalar.ok() ? Json((*scalar)->ToString()) : Json(nullptr);
        }
    }
}

}  // namespace

Json json_value(const arrow::Array& array, std::int64_t row) {
    if (array.IsNull(row)) return nullptr;
    switch (array.type_id()) {
        case arrow::Type::BOOL: return static_cast<const arrow::BooleanArray&>(array).Value(row);
        case arrow::Type::UINT8: return number_json<arrow::UInt8Array>(array, row);
        case arrow::Type::INT8: return number_json<arrow::Int8Array>(array, row);
        case arrow::Type::UINT16: return number_json<arrow::UInt16Array>(array, row);
        case arrow::Type::INT16: return number_json<arrow::Int16Array>(array, row);
        case arrow::Type::UINT32: return number_json<arrow::UInt32Array>(array, row);
        case arrow::Type::INT32: return number_json<arrow::Int32Array>(array, row);
        case arrow::Type::UINT64: return number_json<arrow::UInt64Array>(array, row);
        case arrow::Type::INT64: return number_json<arrow::Int64Array>(array, row);
        case arrow::Type::HALF_FLOAT:
            return json_number(
                double_from_half(static_cast<const arrow::HalfFloatArray&>(array).Value(row)));
        case arrow::Type::FLOAT: return number_json<arrow::FloatArray>(array, row);
        case arrow::Type::DOUBLE: return number_json<arrow::DoubleArray>(array, row);
        case arrow::Type::DATE32: return number_json<arrow::Date32Array>(array, row);
        case arrow::Type::DATE64: return number_json<arrow::Date64Array>(array, row);
        case arrow::Type::TIME32: return number_json<arrow::Time32Array>(array, row);
        case arrow::Type::TIME64: return number_json<arrow::Time64Array>(array, row);
        case arrow::Type::TIMESTAMP: return number_json<arrow::TimestampArray>(array, row);
        case arrow::Type::DURATION: return number_json<arrow::DurationArray>(array, row);
        case arrow::Type::STRING: return text_json<arrow::StringArray>(array, row);
        case arrow::Type::LARGE_STRING: return text_json<arrow::LargeStringArray>(array, row);
        case arrow::Type::STRING_VIEW: return text_json<arrow::StringViewArray>(array, row);
        case arrow::Type::BINARY_VIEW: return bytes_json<arrow::BinaryViewArray>(array, row);
        case arrow::Type::BINARY: return bytes_json<arrow::BinaryArray>(array, row);
        case arrow::Type::LARGE_BINARY: return bytes_json<arrow::LargeBinaryArray>(array, row);
        case arrow::Type::FIXED_SIZE_BINARY:
            return bytes_json<arrow::FixedSizeBinaryArray>(array, row);
        default: return nested_json(array, row);
    }
}

}  // namespace tune::loader
