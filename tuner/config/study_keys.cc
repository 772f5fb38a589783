// The keys of study.yaml: one row each, from which reader, writer, schema, API description and page
// come.
//
// Scalars are typed rows (option_table.h), so a range stands in one place. Sections are rows whose
// reader and writer are those of their own table. The keys that make up the space have no reader
// here: study_reader.cc reads them together.

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/text/number_text.h"
#include "tuner/config/command_template.h"
#include "tuner/config/study_sections.h"
#include "tuner/options/fields.h"
#include "tuner/space/error_text.h"
#include "tuner/space/expression/rules.h"

namespace tune::tuner {
namespace {

constexpr std::size_t kCommandWordsMax = 10'000;
constexpr std::size_t kWordBytesMax = 128u << 10;  // Linux: MAX_ARG_STRLEN
constexpr std::size_t kPathBytesMax = 4096;
constexpr std::size_t kModelNameBytesMax = 256;  // as the registry has it

Result<void> read_version(const Node& node, StudyConfig&) {
    if (node.type == Node::Type::kInt && node.integer == 1) return {};
    return error_at(node.place, "version",
                    "expected 1, found " + describe(node) + "; a later version needs a later tune");
}

Result<void> read_command(const Node& node, StudyConfig& config) {
    if (node.type == Node::Type::kString) {
        Result<std::vector<std::string>> words = split_command(node.text);
        if (!words)
            return Error{words.error().code, place_prefix(node.place) + words.error().message};
        config.command = std::move(*words);
    } else if (node.type == Node::Type::kList) {
        for (const Node& item : node.items) {
            if (item.type == Node::Type::kString) {
                config.command.push_back(item.text);
            } else if (item.is_scalar() && item.type != Node::Type::kNull) {
                config.command.push_back(item.type == Node::Type::kFloat ? number_text(item.number)
                                                                         : to_text(to_json(item)));
            } else {
                return error_at(item.place, "command",
                                "expected a word of the command, found " + describe(item) +
                                    "; quote a word that holds braces: \"{args}\"");
            }
        }
    } else {
        return error_at(
            node.place, "command",
            "expected a list such as [python, train.py, \"{args}\"], found " + describe(node));
    }
    if (config.command.empty() || config.command.front().empty())
        return error_at(node.place, "command", "the command is empty");
    if (config.command.size() > kCommandWordsMax)
        return error_at(node.place, "command", "the command has more than 10000 words");
    for (const std::string& word : config.command)
        if (word.size() > kWordBytesMax)
            return error_at(node.place, "command", "a word of the command is longer than 128 kB");
    return {};
}

Result<void> read_env(const Node& node, StudyConfig& config) {
    if (node.type != Node::Type::kMap)
        return error_at(node.place, "env",
                        "expected a map such as {NAME: value}, found " + describe(node));
    for (const Entry& entry : node.entries) {
        const std::string& name = entry.key;
        if (name.empty() || name.find('=') != std::string::npos ||
            name.find('\0') != std::string::npos || name.size() > 250)
            return error_at(entry.place, "env",
                            in_quotes(name) + " is not a name for an environment variable");
        const Node& value = entry.value;
        if (!value.is_scalar() || value.type == Node::Type::kNull)
            return error_at(value.place.line != 0 ? value.place : entry.place,
                            "env." + shortened(name),
                            "expected a text or number, found " + describe(value));
        std::string text = value.type == Node::Type::kString  ? value.text
                           : value.type == Node::Type::kFloat ? number_text(value.number)
                                                              : to_text(to_json(value));
        if (text.size() > kWordBytesMax || text.find('\0') != std::string::npos)
            return error_at(value.place, "env." + shortened(name),
                            "the value is longer than 128 kB or holds a NUL byte");
        config.env.emplace(name, std::move(text));
    }
    return {};
}

/// Only its shape: which engines and settings there are is known where agents are launched, and the
/// study itself does not depend on it.
Result<void> read_engine(const Node& node, StudyConfig&) {
    if (node.type == Node::Type::kString && !node.text.empty()) return {};
    const Node* on = node.type == Node::Type::kMap ? node.find("on") : nullptr;
    if (on != nullptr && on->type == Node::Type::kString) return {};
    return error_at(
        node.place, "engine",
        "expected the name of an engine, or a map such as {on: slurm, agents: 8}, found " +
            describe(node));
}

Result<void> read_sampler_section(const Node& node, StudyConfig& config) {
    TUNE_TRY(sampler, read_sampler(node, "sampler"));
    config.sampler = std::move(sampler);
    return {};
}

Result<void> read_pruner_section(const Node& node, StudyConfig& config) {
    TUNE_TRY(pruner, read_pruner(node, "pruner"));
    config.pruner = std::move(pruner);
    return {};
}

// --- writers -------------------------------------------------------------------------------------

/// One metric as an object, several as a list.
void write_metric(const StudyConfig& config, Json& json) {
    if (config.metric.name.empty()) return;
    if (config.more_metrics.empty()) {
        json["metric"] = to_json(config.metric);
        return;
    }
    for (const MetricConfig& metric : metrics_of(config)) json["metric"].push_back(to_json(metric));
}

/// Where the order of declaration is not that of the names, which JSON's objects keep.
void write_order(const StudyConfig& config, Json& json) {
    std::vector<std::string> names;
    for (const Parameter& parameter : config.space.parameters()) names.push_back(parameter.name);
    if (!std::is_sorted(names.begin(), names.end())) json["space_order"] = names;
}

void write_forbid(const StudyConfig& config, Json& json) {
    const auto* rules = config.space.rules();
    if (rules != nullptr && !rules->texts().forbid.empty()) json["forbid"] = rules->texts().forbid;
}

void write_derive(const StudyConfig& config, Json& json) {
    const auto* rules = config.space.rules();
    if (rules == nullptr) return;
    for (const auto& [name, text] : rules->texts().derive) json["derive"][name] = text;
}

void write_initial(const StudyConfig& config, Json& json) {
    const Space& space = config.space;
    for (const Point& point : space.initial()) {
        Json values = Json::object();
        for (std::size_t i = 0; i < space.size(); ++i)
            if (is_active(point[i])) values[space[i].name] = space[i].external(point[i]);
        json["initial"].push_back(std::move(values));
    }
}

void write_retry(const StudyConfig& config, Json& json) {
    retry_options().write(&config.retry, json["retry"]);
}

void write_scrape(const StudyConfig& config, Json& json) {
    for (const ScrapeConfig& scrape : config.scrape) {
        Json one = Json::object();
        scrape_options().write(&scrape, one);
        json["scrape"].push_back(std::move(one));
    }
}

void write_log_rules(const StudyConfig& config, Json& json) {
    for (const LogRule& rule : config.log_rules) {
        Json one = Json::object();
        log_rule_options().write(&rule, one);
        json["log_rules"].push_back(std::move(one));
    }
}

// --- rows ----------------------------------------------------------------------------------------

/// Reads a key by its node, where it is given.
using NodeReader = Result<void> (*)(const Node&, StudyConfig&);

TableOf<StudyConfig>::Custom section(std::string type, std::string schema, const char* key,
                                     NodeReader read,
                                     std::function<void(const StudyConfig&, Json&)> write) {
    TableOf<StudyConfig>::Custom how;
    how.type = std::move(type);
    how.schema = std::move(schema);
    how.read = [key, read](const Fields& fields, StudyConfig& config) -> Result<void> {
        const Node* node = fields.find(key);
        return node != nullptr && read != nullptr ? read(*node, config) : Result<void>();
    };
    how.write = std::move(write);
    return how;
}

using Table = TableOf<StudyConfig>;
using C = const StudyConfig&;

bool is_study_name(std::string_view name) {
    return !name.empty() && name != "." && name != ".." &&
           name.find('/') == std::string_view::npos && name.front() != ' ' && name.back() != ' ';
}

bool is_model_name(std::string_view name) {
    return name.find_first_not_of(' ') != std::string_view::npos &&
           name.find_first_of("/:") == std::string_view::npos;
}

void add_trials(Table& table) {
    table.custom("version",
                 section("1", R"({"const": 1})", "version", read_version,
                         [](C, Json& json) { json["version"] = 1; }),
                 "of this format");
    table
        .text("study", &StudyConfig::study, kStudyNameBytesMax,
              "the study's name: a study of this name is resumed, otherwise it is created")
        .matching({.pattern = "^[^/ ]([^/]*[^/ ])?$",
                   .holds = is_study_name,
                   .expected = "a name without '/', and not blank at its ends"})
        .defaults_to("the name of the file");
    table
        .custom("command",
                section("list of words, or text",
                        R"({"anyOf": [{"type": "string", "minLength": 1},
                            {"type": "array", "items": {"type": ["string", "number", "boolean"]},
                             "minItems": 1, "maxItems": )" +
                            std::to_string(kCommandWordsMax) + "}]}",
                        "command", read_command,
                        [](C config, Json& json) {
                            if (!config.command.empty()) json["command"] = config.command;
                        }),
                "argv with placeholders {name}, {args}; a text is split as a shell does")
        .defaults_to("none: clients ask for trials");
    table
        .custom("metric",
                section("text or [map](#metric), or a list of them",
                        R"({"anyOf": [{"$ref": "#/definitions/objective"},
                            {"type": "array", "items": {"$ref": "#/definitions/objective"},
                             "minItems": 1, "maxItems": )" +
                            std::to_string(kObjectivesMax) + "}]}",
                        "metric", read_metric, write_metric),
                "the objective; a list: several objectives")
        .defaults_to("required, here or with -m");
    table.custom("constraints",
                 section("list of [maps](#constraints)",
                         R"({"type": "array", "items": {"$ref": "#/definitions/constraint"},
                             "maxItems": )" +
                             std::to_string(kConstraintsMax) + "}",
                         "constraints", read_constraints,
                         [](C config, Json& json) {
                             if (!config.constraints.empty())
                                 json["constraints"] = to_json(config.constraints);
                         }),
                 "bounds on metrics: a trial beyond one is complete but infeasible");
}

/// They make up the space and are read together (study_reader.cc).
void add_space(Table& table) {
    const auto of_space = [](std::string type, std::string schema, const char* key,
                             void (*write)(C, Json&)) {
        return section(std::move(type), std::move(schema), key, nullptr, write);
    };
    table
        .custom(
            "space",
            of_space("map",
                     R"({"type": ["object", "null"], "maxProperties": 10000,
                "propertyNames": {"pattern": "^(?!args$)[A-Za-z_][A-Za-z0-9_./-]{0,249}$"},
                "additionalProperties": {"$ref": "#/definitions/parameter"}})",
                     "space", [](C config, Json& json) { json["space"] = config.space.to_json(); }),
            "what is tuned: each parameter by its name")
        .defaults_to("required, here or as NAME=SPEC");
    table
        .custom("space_order",
                of_space("list of names", R"({"type": "array", "items": {"type": "string"}})",
                         "space_order", write_order),
                "all names of the space, where the order of a JSON object is lost")
        .defaults_to("the order of the space");
    table.custom("forbid",
                 of_space("expression, or a list of them",
                          R"({"anyOf": [{"type": "null"}, {"$ref": "#/definitions/expression"},
             {"type": "array", "items": {"$ref": "#/definitions/expression"}, "maxItems": 1000}]})",
                          "forbid", write_forbid),
                 "combinations that are never tried: conditions such as opt == 'sgd' and lr > "
                 "0.05");
    table.custom("derive",
                 of_space("map of expressions",
                          R"({"type": ["object", "null"], "maxProperties": 1000,
                 "propertyNames": {"pattern": "^(?!args$)[A-Za-z_][A-Za-z0-9_./-]{0,249}$"},
                 "additionalProperties":
                     {"anyOf": [{"$ref": "#/definitions/expression"}, {"type": "number"}]}})",
                          "derive", write_derive),
                 "values that are computed, passed on and logged, not searched: lr_scaled: lr * "
                 "sqrt(batch / 256)");
    table.custom(
        "initial",
        of_space("list of maps",
                 R"({"type": ["array", "null"], "maxItems": 1000, "items": {"type": "object"}})",
                 "initial", write_initial),
        "points that are tried first; values that they leave out are suggested");
}

void add_search(Table& table) {
    table
        .custom("sampler",
                section("name or [map](#sampler)", R"({"$ref": "#/definitions/sampler"})",
                        "sampler", read_sampler_section,
                        [](C config, Json& json) { json["sampler"] = to_json(config.sampler); }),
                "what proposes points")
        .defaults_to("tpe");
    table
        .custom("pruner",
                section("name or [map](#pruner)", R"({"$ref": "#/definitions/pruner"})", "pruner",
                        read_pruner_section,
                        [](C config, Json& json) { json["pruner"] = to_json(config.pruner); }),
                "what stops trials early")
        .defaults_to("none");
    table
        .custom(
            "budget",
            section("[map](#budget)", R"({"$ref": "#/definitions/budget"})", "budget", read_budget,
                    [](C config, Json& json) { json["budget"] = to_json(config.budget); }),
            "what ends the study, and what a trial may use")
        .defaults_to("no limit");
    table.custom("resources",
                 section("[map](#resources)", R"({"$ref": "#/definitions/resources"})", "resources",
                         read_resources,
                         [](C config, Json& json) {
                             if (config.resources != ResourcesConfig())
                                 json["resources"] = to_json(config.resources);
                         }),
                 "what each process of a trial has to itself, and how many processes a trial is");
    table
        .integer("priority", &StudyConfig::priority, -kPriorityMax, kPriorityMax,
                 "trials of studies with a higher one come first, and take the places of lower "
                 "ones at their checkpoints")
        .defaults_to("0");
}

void add_failures(Table& table) {
    table
        .custom("retry",
                section("[map](#retry)", R"({"$ref": "#/definitions/retry"})", "retry", read_retry,
                        write_retry),
                "when a failed trial is tried again")
        .defaults_to("never");
    table.integer("stop_after_failures", &StudyConfig::stop_after_failures, 0, kCountMax,
                  "the study stops when its first trials fail alike, this many in a row, before "
                  "any succeeds; 0: never");
    table.custom("scrape",
                 section("pattern or [map](#scrape), or a list of them",
                         R"({"anyOf": [{"$ref": "#/definitions/scrape_one"},
         {"type": "array", "items": {"$ref": "#/definitions/scrape_one"}, "maxItems": 100}]})",
                         "scrape", read_scrape, write_scrape),
                 "patterns that turn lines of output into metrics");
    table.custom(
        "log_rules",
        section(
            "list of [maps](#log_rules)",
            R"({"type": "array", "items": {"$ref": "#/definitions/log_rule"}, "maxItems": 100})",
            "log_rules", read_log_rules, write_log_rules),
        "what lines of output say about a failure");
}

void add_running(Table& table) {
    table.custom("checkpoints",
                 section("[map](#checkpoints)", R"({"$ref": "#/definitions/checkpoints"})",
                         "checkpoints", read_checkpoints,
                         [](C config, Json& json) {
                             if (config.checkpoints != CheckpointPolicy())
                                 json["checkpoints"] = to_json(config.checkpoints);
                         }),
                 "where trials' checkpoints are kept, so that another machine can resume them");
    table
        .text("register", &StudyConfig::register_as, kModelNameBytesMax,
              "registered model that gets the best trial's logged model as a new version when the "
              "study completes")
        .matching({.pattern = "^[^/:]*[^/: ][^/:]*$",
                   .holds = is_model_name,
                   .expected = "the name of a registered model, without '/' and ':'"});
    table.duration("grace", &StudyConfig::grace_ms, 0, "time between SIGTERM and SIGKILL");
    table.duration("timeout", &StudyConfig::timeout_ms, 1, "longest time of one attempt")
        .defaults_to("no limit");
    table.custom("env",
                 section("map of texts and numbers",
                         R"({"type": "object", "propertyNames": {"pattern": "^[^=\\u0000]{1,250}$"},
                             "additionalProperties": {"type": ["string", "number", "boolean"]}})",
                         "env", read_env,
                         [](C config, Json& json) {
                             if (!config.env.empty()) json["env"] = config.env;
                         }),
                 "variables of the command's environment");
    table.text("working_dir", &StudyConfig::working_dir, kPathBytesMax, "where the command runs")
        .defaults_to("where the agent runs");
    table.custom("engine",
                 section("name, or map with `on`",
                         R"({"anyOf": [{"type": "string", "minLength": 1},
             {"type": "object", "required": ["on"], "properties": {"on": {"type": "string"}}}]})",
                         "engine", read_engine, nullptr),
                 "what starts agents elsewhere, for `tune run`: an engine's name, or a map with "
                 "`on` and settings that replace those of engines.yaml");
    table.custom("warm_start",
                 section("name of a study, or [map](#warm_start)",
                         R"({"anyOf": [{"type": "string", "minLength": 1, "maxLength": )" +
                             std::to_string(kStudyNameBytesMax) +
                             R"(}, {"$ref": "#/definitions/warm_start"}]})",
                         "warm_start", read_warm_start,
                         [](C config, Json& json) {
                             if (config.warm_start)
                                 json["warm_start"] = to_json(*config.warm_start);
                         }),
                 "what the study takes from an earlier one");
}

OptionTable study_rows() {
    Table table;
    add_trials(table);
    add_space(table);
    add_search(table);
    add_failures(table);
    add_running(table);
    return table;
}

}  // namespace

const OptionTable& study_options() {
    static const OptionTable kOptions = study_rows();
    return kOptions;
}

}  // namespace tune::tuner
