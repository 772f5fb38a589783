// A study's configuration in the description of the API, from the tables of options: what responses
// hold of it, and the body that creates a study.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tuner/config/study_schema.h"
#include "tuner/config/study_sections.h"
#include "tuner/pruner/pruner_kind.h"
#include "tuner/sampler/sampler_kind.h"

namespace tune::tuner {
namespace {

/// A type as the description's readers take it; one that is a JSON Schema stands as it is.
std::string field(const std::string& name, const std::string& type, const std::string& help) {
    if (type.starts_with('{')) return "    " + name + ": " + type + "\n";
    return "    " + name + ": " + to_text(Json(help.empty() ? type : type + " -- " + help)) + "\n";
}

std::string fields_of(const OptionTable& table) {
    std::string text;
    for (const Option& option : table.rows())
        text += field(option.name, table.api_text(option), option.help);
    return text;
}

std::string schema(const std::string& name, const OptionTable& table) {
    return "  " + name + ":\n" + fields_of(table);
}

/// "running_percentile" as "StudyPrunerRunningPercentile".
std::string schema_name(std::string name, std::string_view kind) {
    bool is_start = true;
    for (const char c : kind) {
        if (c != '_')
            name += is_start && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
        is_start = c == '_';
    }
    return name;
}

/// One schema for each kind, and one that is any of them.
template <class FieldsOf>
std::string kinds(const std::string& name, Kinds kinds, FieldsOf fields_of_kind) {
    std::string any;
    std::string text;
    for (const KindBase* kind : kinds) {
        const std::string own = schema_name(name, kind->name);
        any += (any.empty() ? "" : ", ") + ("{\"$ref\": \"#/components/schemas/" + own + "\"}");
        text += "  " + own + ":\n" +
                field("type", "enum(" + std::string(kind->name) + ")!", std::string(kind->help)) +
                fields_of_kind(*kind);
    }
    return "  " + name + ": {json_schema: {anyOf: [" + any + "]}}\n" + text;
}

std::string sampler_fields(const KindBase& kind) {
    const OptionTable& common = common_sampler_options();
    std::string text;
    for (const Option& option : common.rows())
        if (option.name == "seed" || !static_cast<const SamplerKind&>(kind).ends_itself)
            text += field(option.name, common.api_text(option), option.help);
    return text + fields_of(kind.options);
}

std::string pruner_fields(const KindBase& kind) {
    return fields_of(kind.options);
}

// --- the body that creates a study ---------------------------------------------------------------

/// Adds the JSON types that `schema` admits. `definitions`: of the schema of study files.
void add_types(const OrderedJson& schema, const OrderedJson& definitions, OrderedJson& types) {
    constexpr std::string_view kPrefix = "#/definitions/";
    const auto add = [&](const OrderedJson& type) {
        if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
    };
    const auto type_of = [](const OrderedJson& value) {
        return value.is_number() ? "number" : value.type_name();
    };
    if (schema.contains("$ref")) {
        const auto name = schema["$ref"].get<std::string>().substr(kPrefix.size());
        add_types(definitions.at(name), definitions, types);
    } else if (schema.contains("anyOf")) {
        for (const OrderedJson& one : schema["anyOf"]) add_types(one, definitions, types);
    } else if (schema.contains("enum")) {
        for (const OrderedJson& value : schema["enum"]) add(type_of(value));
    } else if (schema.contains("const")) {
        add(type_of(schema["const"]));
    } else if (schema["type"].is_array()) {
        for (const OrderedJson& type : schema["type"]) add(type);
    } else {
        add(schema["type"]);
    }
}

/// Scalars as in the schema of study files; of what has parts only its types, because the schema
/// itself, which has hundreds of definitions, is a response of its own.
OrderedJson input_property(const OrderedJson& schema, const OrderedJson& definitions) {
    OrderedJson types = OrderedJson::array();
    add_types(schema, definitions, types);
    const bool has_parts = std::any_of(types.begin(), types.end(), [](const OrderedJson& type) {
        return type == "object" || type == "array";
    });
    if (!has_parts && !schema.contains("$ref")) return schema;
    OrderedJson property = {{"type", types.size() == 1 ? types.front() : types}};
    for (const char* key : {"description", "default"})
        if (schema.contains(key)) property[key] = schema[key];
    return property;
}

std::string study_input() {
    const OrderedJson schema = OrderedJson::parse(study_schema());
    OrderedJson properties = OrderedJson::object();
    for (const auto& [key, value] : schema["properties"].items()) {
        OrderedJson property = input_property(value, schema["definitions"]);
        if (key == "study") property["minLength"] = 1;
        properties[key == "study" ? "name" : key] = std::move(property);
    }
    properties["request_id"] = {{"description", "not needed: a study is created once by its name"}};
    properties["extend"] = {
        {"type", "boolean"},
        {"description", "accept a space that has grown since the study was created"}};
    properties["replace"] = {
        {"type", "boolean"},
        {"description", "remove a study of this name first if none of its trials is complete"}};
    const OrderedJson input = {
        {"description",
         "study.yaml as JSON, with `name` for `study`. GET /api/2.0/tune/schema has "
         "every key with its parts."},
        {"type", "object"},
        {"properties", std::move(properties)},
        {"required", {"name", "metric", "space"}}};
    return "  StudyInput: {json_schema: " + input.dump() + "}\n";
}

/// Of a request that sets this one key.
std::string integer_input(const std::string& name, std::string_view key) {
    OrderedJson properties = OrderedJson::object();
    study_options().add_schema(properties);
    return "  " + name + ": {json_schema: " + properties[std::string(key)].dump() + "}\n";
}

}  // namespace

std::string study_api_description() {
    return "tag: Studies\nschemas:\n" + schema("StudyMetric", metric_options()) +
           schema("StudyConstraint", constraint_options()) +
           kinds("StudySampler", sampler_kinds(), sampler_fields) +
           kinds("StudyPruner", pruner_kinds(), pruner_fields) +
           schema("StudyBudget", budget_options()) + schema("CostBudget", cost_options()) +
           schema("NoProgressBudget", no_progress_options()) +
           schema("StudyResources", resources_options()) +
           schema("WarmStart", warm_start_options()) +
           schema("EarlierTrial", earlier_trial_options()) + "inputs:\n" + study_input() +
           integer_input("StudyPriority", "priority");
}

}  // namespace tune::tuner
