// The JSON Schema (draft 7) of study files, put together from the tables of keys and options.
//
// It accepts all that the readers accept, so that an editor marks no valid file. What a schema
// cannot express, such as bounds in order or conditions without cycles, is left to the readers.
// tests/tuner/config/schema_test.cc compares the keys with what the readers know, definition by
// definition.

#include "tuner/config/study_schema.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "tuner/config/study_sections.h"
#include "tuner/pruner/pruner_kind.h"
#include "tuner/sampler/sampler_kind.h"
#include "tuner/space/spec_keys.h"

namespace tune::tuner {
namespace {

OrderedJson parsed(std::string_view text) {
    return OrderedJson::parse(text);
}

OrderedJson reference(const std::string& name) {
    return {{"$ref", "#/definitions/" + name}};
}

/// A closed object. What `properties` requires besides `required` is said by readers only.
OrderedJson object_of(OrderedJson properties, const std::vector<std::string>& required) {
    OrderedJson schema = {
        {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
    if (!required.empty()) schema["required"] = required;
    return schema;
}

OrderedJson object_of(const OptionTable& table) {
    OrderedJson properties = OrderedJson::object();
    table.add_schema(properties);
    return object_of(std::move(properties), table.required());
}

/// What specifications of parameters refer to.
void add_words(OrderedJson& definitions) {
    definitions["duration"] = parsed(R"({
        "description": "seconds, or a text such as 90s, 1h30m, 250ms, 2d",
        "anyOf": [{"type": "number", "minimum": 0, "maximum": 315360000},
                  {"type": "string",
                   "pattern": "^([0-9]+(\\.[0-9]*)?(ms|s|m|h|d))+$|^[0-9]+(\\.[0-9]*)?$"}]})");
    definitions["expression"] = {
        {"type", "string"},
        {"minLength", 1},
        {"maxLength", 4096},
        {"description",
         "Python's operators, numbers, 'texts', names of parameters or {any-name}; abs ceil exp "
         "floor log log10 log2 max min pow round sqrt"}};
    definitions["condition"] = parsed(R"({
        "description": "a value, a list (any of), or comparisons",
        "anyOf": [{"type": ["string", "number", "boolean", "null", "array"]},
                  {"type": "object", "properties": {">=": true, ">": true, "<=": true, "<": true},
                   "additionalProperties": false, "minProperties": 1},
                  {"type": "object"}]})");
}

OrderedJson specification(Kind kind, bool is_short_prior, const char* description) {
    OrderedJson properties = OrderedJson::object();
    for (const SpecKey& key : spec_keys(kind, is_short_prior)) {
        OrderedJson& schema = properties[std::string(key.name)];
        schema = parsed("{" + std::string(key.schema) + "}");
        schema["description"] = std::string(key.help);
    }
    std::vector<std::string> required;
    if (!is_short_prior) required.emplace_back(kind_name(kind));
    OrderedJson schema = object_of(std::move(properties), required);
    schema["description"] = description;
    return schema;
}

void add_parameters(OrderedJson& definitions) {
    constexpr std::pair<Kind, const char*> kKinds[] = {
        {Kind::kFloat, "a real number"},
        {Kind::kInt, "an integer"},
        {Kind::kChoice, "one of several values without order"},
        {Kind::kOrdinal, "one of several values in order"},
        {Kind::kConst, "one value"}};
    OrderedJson any =
        OrderedJson::array({parsed(R"({"type": "string", "pattern": ".", "description":
            "the command line's grammar: 1e-5..1e-1:log, 1..8:int, sgd,adamw, 18<34<50"})")});
    for (const auto& [kind, description] : kKinds) {
        const std::string name(kind_name(kind));
        definitions[name] = specification(kind, false, description);
        any.push_back(reference(name));
    }
    OrderedJson& prior = definitions["prior"] = specification(
        Kind::kFloat, true,
        "a real number with a normal or lognormal prior; without bounds five deviations wide");
    prior["oneOf"] = parsed(R"([{"required": ["normal"]}, {"required": ["lognormal"]}])");
    any.push_back(reference("prior"));
    definitions["parameter"] = {{"anyOf", std::move(any)}};
}

void add_metrics(OrderedJson& definitions) {
    definitions["metric"] = object_of(metric_options());
    OrderedJson& constraint = definitions["constraint"] = object_of(constraint_options());
    constraint["description"] = "a bound on a metric of the result";
    constraint["anyOf"] = parsed(R"([{"required": ["min"]}, {"required": ["max"]}])");
    definitions["objective"] = {
        {"anyOf", OrderedJson::array({parsed(R"({"type": "string", "minLength": 1,
                                          "description": "NAME or NAME:min or NAME:max"})"),
                                      reference("metric")})}};
}

/// `section`: "sampler" or "pruner". `properties_of`: of a kind, without its type. `is_short`:
/// whether the kind's name alone is a whole section.
template <class PropertiesOf, class IsShort>
void add_kinds(OrderedJson& definitions, const std::string& section, Kinds kinds,
               PropertiesOf properties_of, IsShort is_short) {
    OrderedJson names = OrderedJson::array();
    OrderedJson any = OrderedJson::array();
    for (const KindBase* kind : kinds) {
        const std::string name(kind->name);
        OrderedJson properties = {{"type", {{"const", name}}}};
        properties_of(*kind, properties);
        std::vector<std::string> required = kind->options.required();
        required.insert(required.begin(), "type");
        const std::string definition = section + "_" + name;
        definitions[definition] = object_of(std::move(properties), required);
        definitions[definition]["description"] = std::string(kind->help);
        any.push_back(reference(definition));
        if (is_short(name)) names.push_back(name);
    }
    if (find_kind(kinds, "none") != nullptr) names.push_back(nullptr);
    any.insert(any.begin(), OrderedJson{{"enum", std::move(names)}});
    definitions[section] = {{"anyOf", std::move(any)}};
}

Node named(const std::string& name) {
    Node node;
    node.type = Node::Type::kString;
    node.text = name;
    return node;
}

void add_sampler(OrderedJson& definitions) {
    const auto properties_of = [](const KindBase& kind, OrderedJson& properties) {
        common_sampler_options().add_schema(properties);
        if (static_cast<const SamplerKind&>(kind).ends_itself) properties.erase("duplicates");
        kind.options.add_schema(properties);
    };
    add_kinds(definitions, "sampler", sampler_kinds(), properties_of, [](const std::string& name) {
        return read_sampler(named(name), "sampler").has_value();
    });
}

void add_pruner(OrderedJson& definitions) {
    const auto properties_of = [](const KindBase& kind, OrderedJson& properties) {
        kind.options.add_schema(properties);
    };
    add_kinds(definitions, "pruner", pruner_kinds(), properties_of, [](const std::string& name) {
        return read_pruner(named(name), "pruner").has_value();
    });
}

void add_sections(OrderedJson& definitions) {
    definitions["cost"] = object_of(cost_options());
    definitions["cost"]["description"] = "what all trials may cost together";
    definitions["no_progress"] = object_of(no_progress_options());
    definitions["no_progress"]["description"] =
        "ends the study when this many trials in a row are no better";
    definitions["earlier_trial"] = object_of(earlier_trial_options());
    definitions["warm_start"] = object_of(warm_start_options());
    definitions["budget"] = object_of(budget_options());
    definitions["resources"] = object_of(resources_options());
    definitions["retry"] = object_of(retry_options());
    definitions["scrape"] = object_of(scrape_options());
    definitions["log_rule"] = object_of(log_rule_options());
    definitions["checkpoints"] = object_of(checkpoint_options());
    definitions["scrape_one"] = {
        {"anyOf",
         OrderedJson::array({parsed(R"({"type": "string", "minLength": 1, "maxLength": 1000})"),
                             reference("scrape")})}};
}

std::string schema_text() {
    OrderedJson schema = {
        {"$schema", "http://json-schema.org/draft-07/schema#"},
        {"$id", "https://tune.invalid/study.schema.json"},
        {"title", "A study of tune"},
        {"description",
         "study.yaml, study.json, and the body of POST /api/2.0/tune/studies (which also takes "
         "`name` for `study`). What a schema cannot say is checked when the study is read: bounds "
         "in order, conditions without cycles, names that exist."},
        {"type", "object"},
        {"additionalProperties", false}};
    study_options().add_schema(schema["properties"] = OrderedJson::object());
    OrderedJson& definitions = schema["definitions"] = OrderedJson::object();
    add_words(definitions);
    add_parameters(definitions);
    add_metrics(definitions);
    add_sampler(definitions);
    add_pruner(definitions);
    add_sections(definitions);
    return schema.dump(1) + "\n";
}

}  // namespace

std::string_view study_schema() {
    static const std::string kText = schema_text();
    return kText;
}

}  // namespace tune::tuner
