// The keys of study.yaml: one row each, from which reader, writer, schema and page come.

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

Result<void> read_version(const Node& node, StudyConfig&) {
    if (node.type == Node::Type::kInt && node.integer == 1) return {};
    return error_at(node.place, "version",
                    "expected 1, found " + describe(node) + "; a later version needs a later tune");
}

Result<void> read_study_name(const Node& node, StudyConfig& config) {
    TUNE_TRY_VOID(check_text(node, "study", 200));
    const std::string& name = node.text;
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
        name.front() == ' ' || name.back() == ' ')
        return error_at(
            node.place, "study",
            "expected a name without '/', and not blank at its ends, found " + describe(node));
    config.study = name;
    return {};
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

Result<void> read_stop_after_failures(const Node& node, StudyConfig& config) {
    constexpr std::int64_t kMost = 1'000'000;
    if (node.type != Node::Type::kInt || node.integer < 0 || node.integer > kMost)
        return error_at(node.place, "stop_after_failures",
                        "expected a whole number in 0..1000000, found " + describe(node));
    config.stop_after_failures = static_cast<std::uint64_t>(node.integer);
    return {};
}

Result<void> read_priority(const Node& node, StudyConfig& config) {
    if (node.type != Node::Type::kInt || node.integer < -kPriorityMax ||
        node.integer > kPriorityMax)
        return error_at(node.place, "priority",
                        "expected a whole number in -1000..1000, found " + describe(node));
    config.priority = static_cast<int>(node.integer);
    return {};
}

Result<void> read_register(const Node& node, StudyConfig& config) {
    constexpr std::size_t kModelNameBytesMax = 256;  // as the registry has it
    TUNE_TRY_VOID(check_text(node, "register", kModelNameBytesMax));
    const bool is_blank = node.text.find_first_not_of(' ') == std::string::npos;
    if (is_blank || node.text.find_first_of("/:") != std::string::npos)
        return error_at(node.place, "register",
                        "expected the name of a registered model, without '/' and ':', found " +
                            describe(node));
    config.register_as = node.text;
    return {};
}

Result<void> read_grace(const Node& node, StudyConfig& config) {
    TUNE_TRY(grace_ms, duration_of(node, "grace"));
    config.grace_ms = grace_ms;
    return {};
}

Result<void> read_timeout(const Node& node, StudyConfig& config) {
    TUNE_TRY(timeout_ms, duration_of(node, "timeout"));
    if (timeout_ms <= 0) return error_at(node.place, "timeout", "expected a duration above 0");
    config.timeout_ms = timeout_ms;
    return {};
}

Result<void> read_working_dir(const Node& node, StudyConfig& config) {
    TUNE_TRY_VOID(check_text(node, "working_dir", kPathBytesMax));
    config.working_dir = node.text;
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

using C = const StudyConfig&;

constexpr Section kSections[] = {
    {"version", "of this format", R"({"const": 1})", read_version,
     [](C, Json& json) { json["version"] = 1; }},
    {"study", "the study's name: created, or resumed by this name",
     R"({"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[^/ ]([^/]*[^/ ])?$"})",
     read_study_name,
     [](C config, Json& json) {
         if (!config.study.empty()) json["study"] = config.study;
     }},
    {"command", "argv with placeholders {name}, {args}; or one text that is split as a shell does",
     R"({"anyOf": [{"type": "string", "minLength": 1},
         {"type": "array", "items": {"type": ["string", "number", "boolean"]},
          "minItems": 1, "maxItems": 10000}]})",
     read_command,
     [](C config, Json& json) {
         if (!config.command.empty()) json["command"] = config.command;
     }},
    {"metric", "the objective; a list: several objectives",
     R"({"anyOf": [{"$ref": "#/definitions/objective"},
         {"type": "array", "items": {"$ref": "#/definitions/objective"},
          "minItems": 1, "maxItems": 8}]})",
     read_metric, write_metric},
    {"constraints", "bounds on metrics: a trial beyond one is complete but infeasible",
     R"({"type": "array", "items": {"$ref": "#/definitions/constraint"}, "maxItems": 16})",
     read_constraints,
     [](C config, Json& json) {
         if (!config.constraints.empty()) json["constraints"] = to_json(config.constraints);
     }},
    {"space", "what is tuned: each parameter by its name",
     R"({"type": ["object", "null"], "maxProperties": 10000,
         "propertyNames": {"pattern": "^(?!args$)[A-Za-z_][A-Za-z0-9_./-]{0,249}$"},
         "additionalProperties": {"$ref": "#/definitions/parameter"}})",
     nullptr, [](C config, Json& json) { json["space"] = config.space.to_json(); }},
    {"space_order", "all names of the space, where the order of a JSON object is lost",
     R"({"type": "array", "items": {"type": "string"}})", nullptr, write_order},
    {"forbid", "combinations that are never tried: conditions such as opt == 'sgd' and lr > 0.05",
     R"({"anyOf": [{"type": "null"}, {"$ref": "#/definitions/expression"},
         {"type": "array", "items": {"$ref": "#/definitions/expression"}, "maxItems": 1000}]})",
     nullptr, write_forbid},
    {"derive",
     "values that are computed, passed on and logged, not searched: lr_scaled: lr * sqrt(batch / "
     "256)",
     R"({"type": ["object", "null"], "maxProperties": 1000,
         "propertyNames": {"pattern": "^(?!args$)[A-Za-z_][A-Za-z0-9_./-]{0,249}$"},
         "additionalProperties":
             {"anyOf": [{"$ref": "#/definitions/expression"}, {"type": "number"}]}})",
     nullptr, write_derive},
    {"initial", "points that are tried first; what they leave open is suggested",
     R"({"type": ["array", "null"], "maxItems": 1000, "items": {"type": "object"}})", nullptr,
     write_initial},
    {"sampler", "what proposes points", R"({"$ref": "#/definitions/sampler"})",
     read_sampler_section, [](C config, Json& json) { json["sampler"] = to_json(config.sampler); }},
    {"pruner", "what stops trials early", R"({"$ref": "#/definitions/pruner"})",
     read_pruner_section, [](C config, Json& json) { json["pruner"] = to_json(config.pruner); }},
    {"budget", "what ends the study, and what a trial may use",
     R"({"$ref": "#/definitions/budget"})", read_budget,
     [](C config, Json& json) { json["budget"] = to_json(config.budget); }},
    {"resources", "what each process of a trial has to itself, and how many processes a trial is",
     R"({"$ref": "#/definitions/resources"})", read_resources,
     [](C config, Json& json) {
         if (config.resources != ResourcesConfig()) json["resources"] = to_json(config.resources);
     }},
    {"priority",
     "trials of studies with a higher one come first, and take the places of lower ones at their "
     "checkpoints; 0 if left out",
     R"({"type": "integer", "minimum": -1000, "maximum": 1000})", read_priority,
     [](C config, Json& json) {
         if (config.priority) json["priority"] = *config.priority;
     }},
    {"retry", "when a failed trial is tried again", R"({"$ref": "#/definitions/retry"})",
     read_retry, write_retry},
    {"stop_after_failures",
     "the study stops when its first trials fail alike, this many in a row, before any succeeds "
     "(default 3; 0: never)",
     R"({"type": "integer", "minimum": 0, "maximum": 1000000})", read_stop_after_failures,
     [](C config, Json& json) { json["stop_after_failures"] = config.stop_after_failures; }},
    {"scrape", "patterns that turn lines of output into metrics",
     R"({"anyOf": [{"$ref": "#/definitions/scrape_one"},
         {"type": "array", "items": {"$ref": "#/definitions/scrape_one"}, "maxItems": 100}]})",
     read_scrape, write_scrape},
    {"log_rules", "what lines of output say about a failure",
     R"({"type": "array", "items": {"$ref": "#/definitions/log_rule"}, "maxItems": 100})",
     read_log_rules, write_log_rules},
    {"checkpoints", "where trials' checkpoints are kept, so that another machine can go on",
     R"({"$ref": "#/definitions/checkpoints"})", read_checkpoints,
     [](C config, Json& json) {
         if (config.checkpoints != CheckpointPolicy())
             json["checkpoints"] = to_json(config.checkpoints);
     }},
    {"register",
     "registered model that gets the best trial's logged model as a new version when the study "
     "completes",
     R"({"type": "string", "minLength": 1, "maxLength": 256, "pattern": "^[^/:]*[^/: ][^/:]*$"})",
     read_register,
     [](C config, Json& json) {
         if (!config.register_as.empty()) json["register"] = config.register_as;
     }},
    {"grace", "time between SIGTERM and SIGKILL", R"({"$ref": "#/definitions/duration"})",
     read_grace, [](C config, Json& json) { json["grace"] = duration_text(config.grace_ms); }},
    {"timeout", "longest time of one attempt", R"({"$ref": "#/definitions/duration"})",
     read_timeout,
     [](C config, Json& json) {
         if (config.timeout_ms) json["timeout"] = duration_text(*config.timeout_ms);
     }},
    {"env", "variables of the command's environment",
     R"({"type": "object", "propertyNames": {"pattern": "^[^=\\u0000]{1,250}$"},
         "additionalProperties": {"type": ["string", "number", "boolean"]}})",
     read_env,
     [](C config, Json& json) {
         if (!config.env.empty()) json["env"] = config.env;
     }},
    {"working_dir", "where the command runs; else where the agent stands",
     R"({"type": "string", "maxLength": 4096})", read_working_dir,
     [](C config, Json& json) {
         if (!config.working_dir.empty()) json["working_dir"] = config.working_dir;
     }},
    {"engine",
     "what starts agents elsewhere, for `tune run`: an engine's name, or a map with `on` "
     "and settings that replace those of engines.yaml",
     R"({"anyOf": [{"type": "string", "minLength": 1},
         {"type": "object", "required": ["on"], "properties": {"on": {"type": "string"}}}]})",
     read_engine, [](C, Json&) {}},
    {"warm_start", "what the study takes from an earlier one; a text: its name",
     R"({"anyOf": [{"type": "string", "minLength": 1, "maxLength": 200},
         {"$ref": "#/definitions/warm_start"}]})",
     read_warm_start,
     [](C config, Json& json) {
         if (config.warm_start) json["warm_start"] = to_json(*config.warm_start);
     }},
};

}  // namespace

std::span<const Section> study_sections() {
    return kSections;
}

}  // namespace tune::tuner
