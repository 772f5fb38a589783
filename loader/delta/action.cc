// Actions are read leniently where the protocol says so (unknown actions and fields are passed
// over) and strictly where rows depend on it: a path, a size or a deletion vector that is not as
// the protocol has it is an error, never a guess.

#include "loader/delta/action.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/text/percent.h"
#include "base/text/text.h"

namespace tune::loader {
namespace {

/// Reader features whose rules are kept here (PROTOCOL.md).
constexpr std::array<std::string_view, 7> kKnownFeatures = {
    "columnMapping",       "deletionVectors", "timestampNtz",        "v2Checkpoint",
    "vacuumProtocolCheck", "typeWidening",    "typeWidening-preview"};

Error damaged(std::string_view action, std::string_view field) {
    return data_loss("the action '" + std::string(action) + "' has no usable '" +
                     std::string(field) + "'");
}

/// The field when it is there and not null.
const Json* find(const Json& json, const char* name) {
    const auto found = json.find(name);
    return found == json.end() || found->is_null() ? nullptr : &*found;
}

std::optional<std::string> text_of(const Json& json, const char* name) {
    const Json* field = find(json, name);
    if (!field || !field->is_string()) return std::nullopt;
    return field->get<std::string>();
}

std::optional<std::int64_t> number_of(const Json& json, const char* name) {
    const Json* field = find(json, name);
    if (!field || !field->is_number_integer()) return std::nullopt;
    if (field->is_number_unsigned() && field->get<std::uint64_t>() > INT64_MAX) return std::nullopt;
    return field->get<std::int64_t>();
}

Result<DeletionVector> parse_vector(const Json& json) {
    const auto storage = text_of(json, "storageType");
    const auto path = text_of(json, "pathOrInlineDv");
    const auto bytes = number_of(json, "sizeInBytes");
    const auto cardinality = number_of(json, "cardinality");
    if (!storage || storage->size() != 1) return damaged("deletionVector", "storageType");
    if (!path) return damaged("deletionVector", "pathOrInlineDv");
    if (!bytes || *bytes < 0 || *bytes > INT32_MAX) return damaged("deletionVector", "sizeInBytes");
    if (!cardinality || *cardinality < 0) return damaged("deletionVector", "cardinality");
    DeletionVector vector{storage->front(), *path, number_of(json, "offset"), *bytes, *cardinality};
    if (vector.offset && (*vector.offset < 0 || *vector.offset > INT32_MAX))
        return damaged("deletionVector", "offset");
    return vector;
}

Result<DeltaFile> parse_file(const Json& json, const char* action, bool is_add) {
    if (!json.is_object()) return damaged(action, "path");
    const auto encoded = text_of(json, "path");
    if (!encoded) return damaged(action, "path");
    DeltaFile file;
    TUNE_TRY(path, file_path(*encoded));
    file.path = std::move(path);
    if (is_add) {
        const auto bytes = number_of(json, "size");
        if (!bytes || *bytes < 0) return damaged(action, "size");
        file.bytes = static_cast<std::uint64_t>(*bytes);
    }
    if (const Json* values = find(json, "partitionValues"); is_add && values) {
        if (!values->is_object()) return damaged(action, "partitionValues");
        for (const auto& [name, value] : values->items()) {
            const bool is_null = value.is_null() || (value.is_string() && value == "");
            if (!is_null && !value.is_string()) return damaged(action, "partitionValues");
            file.partition[name] = is_null ? std::nullopt : std::optional(value.get<std::string>());
        }
    }
    if (const Json* vector = find(json, "deletionVector")) {
        if (!vector->is_object()) return damaged(action, "deletionVector");
        TUNE_TRY(deletion, parse_vector(*vector));
        file.deletion = std::move(deletion);
    }
    return file;
}

Result<DeltaProtocol> parse_protocol(const Json& json) {
    const auto version = json.is_object() ? number_of(json, "minReaderVersion") : std::nullopt;
    if (!version) return damaged("protocol", "minReaderVersion");
    DeltaProtocol protocol{*version};
    if (const Json* features = find(json, "readerFeatures")) {
        if (!features->is_array()) return damaged("protocol", "readerFeatures");
        for (const Json& feature : *features) {
            if (!feature.is_string()) return damaged("protocol", "readerFeatures");
            protocol.reader_features.push_back(feature.get<std::string>());
        }
    }
    return protocol;
}

Result<DeltaMetadata> parse_metadata(const Json& json) {
    const auto schema = json.is_object() ? text_of(json, "schemaString") : std::nullopt;
    if (!schema) return damaged("metaData", "schemaString");
    DeltaMetadata metadata;
    metadata.schema = *schema;
    metadata.id = text_of(json, "id").value_or("");
    if (const Json* format = find(json, "format"); format && format->is_object())
        metadata.provider = text_of(*format, "provider").value_or("parquet");
    if (const Json* columns = find(json, "partitionColumns")) {
        if (!columns->is_array()) return damaged("metaData", "partitionColumns");
        for (const Json& column : *columns) {
            if (!column.is_string()) return damaged("metaData", "partitionColumns");
            metadata.partition_columns.push_back(column.get<std::string>());
        }
    }
    if (const Json* configuration = find(json, "configuration");
        configuration && configuration->is_object())
        for (const auto& [key, value] : configuration->items())
            if (value.is_string()) metadata.configuration[key] = value.get<std::string>();
    return metadata;
}

}  // namespace

std::string DeltaFile::key() const {
    return deletion ? path + "\n" + deletion->unique_id() : path;
}

Result<std::string> file_path(std::string_view encoded) {
    std::string path = percent_decode(encoded);
    if (path.starts_with('/') || path.find("://") != std::string::npos || path.starts_with("file:"))
        return Error{Code::kNotImplemented,
                     "the file '" + path +
                         "' lies outside of the table (a shallow clone?); copy the table first"};
    const std::filesystem::path parts(path);
    const bool leads_out =
        std::any_of(parts.begin(), parts.end(), [](const auto& part) { return part == ".."; });
    if (path.empty() || leads_out || path.find('\0') != std::string::npos)
        return data_loss("the file '" + path + "' leads out of the table");
    return path;
}

Result<DeltaAction> parse_action(const Json& json) {
    if (!json.is_object()) return data_loss("an action that is no JSON object");
    DeltaAction action;
    if (const Json* add = find(json, "add")) {
        TUNE_TRY(file, parse_file(*add, "add", true));
        action.add = std::move(file);
    } else if (const Json* remove = find(json, "remove")) {
        TUNE_TRY(file, parse_file(*remove, "remove", false));
        action.remove = std::move(file);
    } else if (const Json* protocol = find(json, "protocol")) {
        TUNE_TRY(parsed, parse_protocol(*protocol));
        action.protocol = std::move(parsed);
    } else if (const Json* metadata = find(json, "metaData")) {
        TUNE_TRY(parsed, parse_metadata(*metadata));
        action.metadata = std::move(parsed);
    } else if (const Json* sidecar = find(json, "sidecar")) {
        const auto encoded = sidecar->is_object() ? text_of(*sidecar, "path") : std::nullopt;
        if (!encoded) return damaged("sidecar", "path");
        TUNE_TRY(path, file_path(*encoded));
        action.sidecar = std::move(path);
    } else if (const Json* info = find(json, "commitInfo"); info && info->is_object()) {
        action.commit_time_ms = number_of(*info, "inCommitTimestamp");
        if (!action.commit_time_ms) action.commit_time_ms = number_of(*info, "timestamp");
    }
    return action;
}

Result<std::vector<DeltaAction>> parse_commit(std::string_view text) {
    std::vector<DeltaAction> actions;
    for (std::size_t line = 1; !text.empty(); ++line) {
        const std::size_t end = text.find('\n');
        const std::string_view row = trimmed(text.substr(0, end));
        text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
        if (row.empty()) continue;
        const Result<Json> json = parse_json(row);
        Result<DeltaAction> action =
            json ? parse_action(*json) : Result<DeltaAction>(data_loss(json.error().message));
        if (!action)
            return Error{action.error().code,
                         "line " + std::to_string(line) + ": " + action.error().message};
        actions.push_back(*std::move(action));
    }
    return actions;
}

Result<void> check_protocol(const DeltaProtocol& protocol) {
    if (protocol.reader_version < 1 || protocol.reader_version > 3)
        return Error{Code::kNotImplemented, "the table needs a reader of version " +
                                                std::to_string(protocol.reader_version) +
                                                ", this one knows 1 to 3"};
    if (protocol.reader_version < 3) return {};
    for (const std::string& feature : protocol.reader_features)
        if (std::find(kKnownFeatures.begin(), kKnownFeatures.end(), feature) ==
            kKnownFeatures.end())
            return Error{Code::kNotImplemented, "the table uses the reader feature '" + feature +
                                                    "', which this reader does not know"};
    return {};
}

}  // namespace tune::loader
