// A small YAML language that expands to OpenAPI when the program is built. Unknown keys are errors
// that name file and line, so a typing error fails the build instead of leaving a hole in the
// description.

#include "tracker/openapi/description.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <stdexcept>

namespace tune::openapi {
namespace {

[[noreturn]] void refuse(const YAML::Node& node, const std::string& why) {
    throw std::runtime_error(std::to_string(node.Mark().line + 1) + ": " + why);
}

void check_keys(const YAML::Node& map, const std::set<std::string>& known, const char* what) {
    if (!map.IsMap()) refuse(map, std::string(what) + " must be a map");
    for (const auto& entry : map)
        if (!known.contains(entry.first.as<std::string>()))
            refuse(entry.first,
                   std::string(what) + " has no '" + entry.first.as<std::string>() + "'");
}

/// YAML as JSON; plain scalars become null, booleans and numbers as YAML 1.2 reads them.
Schema plain_json(const YAML::Node& node) {
    if (node.IsNull()) return nullptr;
    if (node.IsSequence()) {
        Schema list = Schema::array();
        for (const auto& item : node) list.push_back(plain_json(item));
        return list;
    }
    if (node.IsMap()) {
        Schema map = Schema::object();
        for (const auto& entry : node)
            map[entry.first.as<std::string>()] = plain_json(entry.second);
        return map;
    }
    const std::string text = node.Scalar();
    if (node.Tag() == "!" || text.empty()) return text;
    const Schema parsed = Schema::parse(text, nullptr, false);
    return parsed.is_boolean() || parsed.is_number() || parsed.is_null() ? parsed : Schema(text);
}

Field read_type_node(const YAML::Node& node, Dialect dialect);
Schema whole_schema(const YAML::Node& node, Dialect dialect);

Schema object_schema(const YAML::Node& node, Dialect dialect) {
    Schema properties = Schema::object();
    Schema required = Schema::array();
    Schema schema{{"type", "object"}};
    const bool is_response = dialect == Dialect::kAnswer;
    Schema others = !is_response;
    for (const auto& entry : node) {
        auto name = entry.first.as<std::string>();
        Field field = read_type_node(entry.second, dialect);
        if (name == "*") {
            others = std::move(field.schema);
            continue;
        }
        if (name.ends_with('!')) {
            name.pop_back();
            field = {whole_schema(entry.second, dialect), true};
        }
        if (field.is_required) required.push_back(name);
        properties[name] = std::move(field.schema);
    }
    schema["properties"] = std::move(properties);
    if (!required.empty()) schema["required"] = std::move(required);
    if (others != Schema(true)) schema["additionalProperties"] = std::move(others);
    return schema;
}

Field read_type_node(const YAML::Node& node, Dialect dialect) {
    if (node.IsScalar()) {
        try {
            return read_field(node.Scalar(), dialect);
        } catch (const std::invalid_argument& error) {
            refuse(node, error.what());
        }
    }
    if (!node.IsMap()) refuse(node, "a type is a text or a map");
    if (node["json_schema"]) {
        check_keys(node, {"json_schema"}, "a type with json_schema");
        return {plain_json(node["json_schema"]), false};
    }
    return {optional_schema(object_schema(node, dialect), dialect), false};
}

/// A schema that stands for itself: not a field, so it is neither optional nor null.
Schema whole_schema(const YAML::Node& node, Dialect dialect) {
    if (node.IsMap() && !node["json_schema"]) return object_schema(node, dialect);
    if (node.IsMap()) return plain_json(node["json_schema"]);
    return read_type_node(YAML::Node(node.Scalar() + "!"), dialect).schema;
}

// --- operations ----------------------------------------------------------------------------------

struct Place {
    std::string method;
    std::string path;
};

Place read_place(const YAML::Node& key) {
    static const std::set<std::string> kMethods = {"GET", "POST", "PUT", "PATCH", "DELETE"};
    const auto text = key.as<std::string>();
    const std::size_t space = text.find(' ');
    if (space == std::string::npos || text.substr(space + 1, 1) != "/" ||
        !kMethods.contains(text.substr(0, space)))
        refuse(key, "an operation is 'METHOD /path', not '" + text + "'");
    Place place{text.substr(0, space), text.substr(space + 1)};
    std::transform(place.method.begin(), place.method.end(), place.method.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return place;
}

/// "post", "/api/2.0/mlflow/runs/log-batch" -> "post_runs_log_batch".
std::string operation_id(const Place& place) {
    std::string path = place.path;
    for (const char* prefix : {"/ajax-api/2.0/mlflow/", "/api/2.0/mlflow/", "/ajax-api/2.0/",
                               "/api/2.0/", "/api/3.0/mlflow/", "/api/", "/"}) {
        if (!path.starts_with(prefix)) continue;
        path = path.substr(std::string(prefix).size());
        break;
    }
    std::string id = place.method + "_";
    for (const char c : path) {
        if (std::isalnum(static_cast<unsigned char>(c))) {
            id.push_back(c);
        } else if (!id.ends_with('_')) {
            id.push_back('_');
        }
    }
    while (id.ends_with('_')) id.pop_back();
    return id;
}

std::vector<std::string> names_in_path(const std::string& path) {
    std::vector<std::string> names;
    for (std::size_t open = path.find('{'); open != std::string::npos;
         open = path.find('{', open + 1))
        names.push_back(path.substr(open + 1, path.find('}', open) - open - 1));
    return names;
}

Schema parameter(const std::string& name, const char* where, Field field) {
    Schema out{{"name", name}, {"in", where}, {"required", field.is_required}};
    if (field.schema.contains("description")) {
        out["description"] = field.schema["description"];
        field.schema.erase("description");
    }
    out["schema"] = std::move(field.schema);
    return out;
}

Schema read_parameters(const YAML::Node& node, const Place& place) {
    Schema out = Schema::array();
    for (const std::string& name : names_in_path(place.path)) {
        const YAML::Node given = node["path"] ? node["path"][name] : YAML::Node();
        Field field = given && !given.IsNull() ? read_type_node(given, Dialect::kQuery)
                                               : read_field("text(1..)", Dialect::kQuery);
        field.is_required = true;
        out.push_back(parameter(name, "path", std::move(field)));
    }
    for (const auto& entry : node["query"])
        out.push_back(parameter(entry.first.as<std::string>(), "query",
                                read_type_node(entry.second, Dialect::kQuery)));
    for (const auto& entry : node["headers"])
        out.push_back(parameter(entry.first.as<std::string>(), "header",
                                read_type_node(entry.second, Dialect::kQuery)));
    return out;
}

Schema content(const std::string& media_type, Schema schema) {
    return {{"content", {{media_type, {{"schema", std::move(schema)}}}}}};
}

Schema read_body(const YAML::Node& node, Dialect dialect) {
    if (node["upload"]) {
        Schema body = content(node["upload"].as<std::string>(), Schema::object());
        body["required"] = false;  // HTTP does not distinguish no body from an empty one
        return body;
    }
    const Schema schema = whole_schema(node["request"], dialect);
    const bool is_required = schema.contains("required") || schema.contains("$ref");
    Schema body =
        content("application/json", is_required ? schema : optional_schema(schema, dialect));
    body["required"] = is_required;
    return body;
}

Schema read_response(const YAML::Node& node) {
    Schema answer{{"description", "Done"}};
    if (node.IsScalar()) {
        const auto text = node.as<std::string>();
        if (text == "none") return answer;
        if (text.find('/') != std::string::npos) {
            Schema schema = Schema::object();
            if (text.starts_with("text/")) schema["type"] = "string";
            answer.update(content(text, schema));
            return answer;
        }
    }
    answer.update(content("application/json", whole_schema(node, Dialect::kAnswer)));
    return answer;
}

Schema error_reference(const std::string& status) {
    return {{"$ref", "#/components/responses/Error" + status}};
}

Schema read_responses(const YAML::Node& node) {
    Schema responses = Schema::object();
    if (node["answer"]) responses["200"] = read_response(node["answer"]);
    for (const auto& entry : node["answers"])
        responses[entry.first.as<std::string>()] = read_response(entry.second);
    if (responses.empty()) refuse(node, "an operation needs `answer` or `answers`");
    std::set<std::string> errors(common_errors().begin(), common_errors().end());
    for (const auto& status : node["errors"]) errors.insert(status.as<std::string>());
    if (node["request"] || node["upload"]) errors.insert("413");
    for (const std::string& status : errors)
        if (!responses.contains(status)) responses[status] = error_reference(status);
    return responses;
}

Schema read_operation(const YAML::Node& node, const Place& place, const std::string& tag,
                      Dialect dialect) {
    check_keys(node,
               {"summary", "about", "path", "query", "headers", "request", "upload", "answer",
                "answers", "errors", "reads", "deprecated"},
               "an operation");
    if (!node["summary"]) refuse(node, "an operation needs a summary");
    if (node["reads"])
        dialect = node["reads"].as<std::string>() == "strict" ? Dialect::kStrict : dialect;
    Schema operation{{"tags", Schema::array({tag})},
                     {"summary", node["summary"].as<std::string>()},
                     {"operationId", operation_id(place)}};
    if (node["about"]) operation["description"] = node["about"].as<std::string>();
    if (node["deprecated"]) operation["deprecated"] = node["deprecated"].as<bool>();
    Schema parameters = read_parameters(node, place);
    if (!parameters.empty()) operation["parameters"] = std::move(parameters);
    if (node["request"] || node["upload"]) operation["requestBody"] = read_body(node, dialect);
    operation["responses"] = read_responses(node);
    return operation;
}

void read_schemas(const YAML::Node& node, Dialect dialect, Schema& schemas) {
    for (const auto& entry : node) {
        const auto name = entry.first.as<std::string>();
        if (schemas.contains(name)) refuse(entry.first, "the schema " + name + " is there already");
        schemas[name] = whole_schema(entry.second, dialect);
    }
}

void read_document(const YAML::Node& node, Description& description) {
    check_keys(node, {"tag", "about", "reads", "schemas", "inputs", "operations"}, "a description");
    if (!node["tag"]) refuse(node, "a description needs a tag");
    const auto tag = node["tag"].as<std::string>();
    const bool is_strict = node["reads"] && node["reads"].as<std::string>() == "strict";
    const Dialect dialect = is_strict ? Dialect::kStrict : Dialect::kProtobuf;
    Schema about{{"name", tag}};
    if (node["about"]) about["description"] = node["about"].as<std::string>();
    if (node["operations"]) description.tags.push_back(std::move(about));
    read_schemas(node["schemas"], Dialect::kAnswer, description.schemas);
    read_schemas(node["inputs"], dialect, description.schemas);
    for (const auto& entry : node["operations"]) {
        const Place place = read_place(entry.first);
        Schema& operations = description.paths[place.path];
        if (operations.contains(place.method))
            refuse(entry.first, "this operation is there already");
        operations[place.method] = read_operation(entry.second, place, tag, dialect);
    }
}

}  // namespace

const std::vector<std::string>& common_errors() {
    static const std::vector<std::string> kErrors = {"400", "401", "403", "429"};
    return kErrors;
}

void read_description(const std::filesystem::path& file, Description& description) {
    try {
        read_document(YAML::LoadFile(file.string()), description);
    } catch (const YAML::Exception& error) {
        throw std::runtime_error(file.string() + ":" + std::to_string(error.mark.line + 1) + ": " +
                                 error.msg);
    } catch (const std::runtime_error& error) {
        throw std::runtime_error(file.string() + ":" + error.what());
    }
}

}  // namespace tune::openapi
