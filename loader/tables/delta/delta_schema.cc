// The types of Delta's schema as Arrow's. A column that cannot be read is an error only when it is
// wanted, so that the others of its table can be.

#include "loader/tables/delta/delta_schema.h"

#include <arrow/type.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace tune::loader {
namespace {

using TypePtr = std::shared_ptr<arrow::DataType>;

Error unknown_type(const std::string& type) {
    return Error{Code::kNotImplemented, "the type '" + type + "' is not known"};
}

Result<TypePtr> decimal_type(const std::string& name) {
    int precision = 0;
    int scale = 0;
    const char* const end = name.data() + name.size();
    const auto first = std::from_chars(name.data() + 8, end, precision);
    const bool is_whole = first.ec == std::errc{} && first.ptr < end && *first.ptr == ',' &&
                          std::from_chars(first.ptr + 1, end, scale).ec == std::errc{};
    if (!is_whole || precision < 1 || precision > 38 || scale < 0 || scale > precision)
        return unknown_type(name);
    return arrow::decimal128(precision, scale);
}

Result<TypePtr> primitive_type(const std::string& name) {
    if (name == "string") return arrow::utf8();
    if (name == "long") return arrow::int64();
    if (name == "integer") return arrow::int32();
    if (name == "short") return arrow::int16();
    if (name == "byte") return arrow::int8();
    if (name == "float") return arrow::float32();
    if (name == "double") return arrow::float64();
    if (name == "boolean") return arrow::boolean();
    if (name == "binary") return arrow::binary();
    if (name == "date") return arrow::date32();
    if (name == "timestamp") return arrow::timestamp(arrow::TimeUnit::MICRO, "UTC");
    if (name == "timestamp_ntz") return arrow::timestamp(arrow::TimeUnit::MICRO);
    if (name == "void") return arrow::null();
    if (name.starts_with("decimal(")) return decimal_type(name);
    return unknown_type(name);
}

Result<TypePtr> type_of(const Json& json);

Result<TypePtr> struct_type(const Json& json) {
    const auto fields = json.find("fields");
    if (fields == json.end() || !fields->is_array()) return data_loss("a struct without fields");
    arrow::FieldVector members;
    for (const Json& field : *fields) {
        if (!field.is_object() || !field.contains("name") || !field["name"].is_string() ||
            !field.contains("type"))
            return data_loss("a field without name or type");
        TUNE_TRY(type, type_of(field["type"]));
        members.push_back(arrow::field(field["name"].get<std::string>(), type));
    }
    return arrow::struct_(std::move(members));
}

Result<TypePtr> type_of(const Json& json) {
    if (json.is_string()) return primitive_type(json.get<std::string>());
    if (!json.is_object() || !json.contains("type") || !json["type"].is_string())
        return data_loss("a type that is neither a name nor an object");
    const std::string kind = json["type"].get<std::string>();
    if (kind == "struct") return struct_type(json);
    if (kind == "array" && json.contains("elementType")) {
        TUNE_TRY(element, type_of(json["elementType"]));
        return arrow::list(element);
    }
    if (kind == "map" && json.contains("keyType") && json.contains("valueType")) {
        TUNE_TRY(key, type_of(json["keyType"]));
        TUNE_TRY(value, type_of(json["valueType"]));
        return arrow::map(key, value);
    }
    return unknown_type(kind);
}

bool holds_struct(const arrow::DataType& type) {
    if (type.id() == arrow::Type::STRUCT) return true;
    return std::any_of(type.fields().begin(), type.fields().end(),
                       [](const auto& field) { return holds_struct(*field->type()); });
}

enum class Mapping { kNone, kName, kId };

Result<Mapping> mapping_of(const DeltaMetadata& metadata, const DeltaProtocol& protocol) {
    const auto& features = protocol.reader_features;
    const bool is_enabled =
        protocol.reader_version == 2 ||
        std::find(features.begin(), features.end(), "columnMapping") != features.end();
    const auto mode = metadata.configuration.find("delta.columnMapping.mode");
    if (!is_enabled || mode == metadata.configuration.end() || mode->second == "none")
        return Mapping::kNone;
    if (mode->second == "name") return Mapping::kName;
    if (mode->second == "id") return Mapping::kId;
    return Error{Code::kNotImplemented, "the column mapping '" + mode->second + "' is not known"};
}

Result<void> map_column(const Json& field, Mapping mapping, TableColumn& column) {
    if (mapping == Mapping::kNone) return {};
    const Json metadata = field.value("metadata", Json::object());
    const auto physical = metadata.find("delta.columnMapping.physicalName");
    const auto id = metadata.find("delta.columnMapping.id");
    if (physical == metadata.end() || !physical->is_string())
        return data_loss("column '" + column.name + "' has no physical name");
    column.stored_name = physical->get<std::string>();
    if (mapping == Mapping::kId) {
        if (id == metadata.end() || !id->is_number_integer())
            return data_loss("column '" + column.name + "' has no id");
        column.field_id = id->get<int>();
    }
    if (holds_struct(*column.type))
        return Error{Code::kNotImplemented, "column '" + column.name +
                                                "' holds structs under a column mapping, which "
                                                "this reader does not resolve"};
    return {};
}

}  // namespace

Result<std::vector<TableColumn>> delta_columns(const DeltaMetadata& metadata,
                                               const DeltaProtocol& protocol,
                                               const std::vector<std::string>& wanted) {
    Result<Json> schema = parse_json(metadata.schema);
    if (!schema || !schema->is_object() || !schema->contains("fields") ||
        !(*schema)["fields"].is_array())
        return data_loss("the table's schema is no JSON of a struct");
    TUNE_TRY(mapping, mapping_of(metadata, protocol));
    std::vector<TableColumn> columns;
    for (const Json& field : (*schema)["fields"]) {
        if (!field.is_object() || !field.contains("name") || !field["name"].is_string() ||
            !field.contains("type"))
            return data_loss("the table's schema has a column without name or type");
        TableColumn column;
        column.name = column.stored_name = field["name"].get<std::string>();
        const auto& partitions = metadata.partition_columns;
        column.is_partition =
            std::find(partitions.begin(), partitions.end(), column.name) != partitions.end();
        Result<TypePtr> type = type_of(field["type"]);
        Result<void> mapped;
        if (type) {
            column.type = *type;
            mapped = map_column(field, mapping, column);
        }
        if (type && mapped) {
            columns.push_back(std::move(column));
            continue;
        }
        const Error& error = type ? mapped.error() : type.error();
        const bool is_wanted =
            wanted.empty() || std::find(wanted.begin(), wanted.end(), column.name) != wanted.end();
        if (is_wanted || error.code != Code::kNotImplemented)
            return Error{error.code, "column '" + column.name + "': " + error.message};
    }
    return columns;
}

}  // namespace tune::loader
