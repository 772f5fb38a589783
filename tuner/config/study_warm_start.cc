// `warm_start` of study.yaml: what a study takes from an earlier one.
//
// `from` names a study of the same server; `trials` are given in place. When the study is created,
// the first is resolved into the second and recorded, so that later changes to the earlier study
// change nothing. What did not fit is kept as notes, a sentence each.

#include <limits>
#include <nlohmann/json.hpp>

#include "tuner/config/study_sections.h"
#include "tuner/options/fields.h"

namespace tune::tuner {
namespace {

constexpr std::size_t kParamsBytesMax = 4u << 20;

Result<void> read_params(const Fields& fields, EarlierTrial& trial) {
    const Node* params = fields.find("params");
    if (params == nullptr || params->type != Node::Type::kMap)
        return error_at(fields.node().place, fields.path(),
                        "expected {params: {NAME: VALUE, ...}, value: NUMBER}");
    trial.params_json = to_text(to_json(*params));
    if (trial.params_json.size() > kParamsBytesMax)
        return error_at(fields.node().place, fields.path(), "the params are longer than 4 MB");
    return {};
}

/// `value` or `values`, of which one is given.
Result<void> read_values(const Fields& fields, EarlierTrial& trial) {
    const Node* value = fields.find("value");
    const Node* values = fields.find("values");
    if ((value == nullptr) == (values == nullptr))
        return error_at(fields.node().place, fields.path(),
                        value == nullptr ? "'value' is missing (or 'values', a list)"
                                         : "expected 'value' or 'values', not both");
    if (value != nullptr) return fields.number("value", trial.value, -kNumberMax, kNumberMax);
    TUNE_TRY(numbers, read_numbers(*values, fields.path_of("values")));
    trial.value = numbers.front();
    trial.more_values.assign(numbers.begin() + 1, numbers.end());
    return {};
}

void write_params(const EarlierTrial& trial, Json& json) {
    const Result<Json> params = parse_json(trial.params_json);
    json["params"] = params ? *params : Json::object();
}

void write_value(const EarlierTrial& trial, Json& json) {
    if (trial.more_values.empty()) json["value"] = trial.value;
}

void write_values(const EarlierTrial& trial, Json& json) {
    if (trial.more_values.empty()) return;
    json["values"] = trial.more_values;
    json["values"].insert(json["values"].begin(), trial.value);
}

OptionTable earlier_trial_rows() {
    TableOf<EarlierTrial> table;
    table
        .custom("params",
                {.type = "map",
                 .schema = R"({"type": "object"})",
                 .api = "object",
                 .read = read_params,
                 .write = write_params,
                 .is_always_written = true},
                "the values of its parameters")
        .needed();
    table
        .custom("value",
                {.type = "number",
                 .schema = R"({"type": "number"})",
                 .api = "number",
                 .read = read_values,
                 .write = write_value},
                "of the objective")
        .defaults_to("none: give it or values");
    table.custom("values",
                 {.type = "list of numbers",
                  .schema = R"({"type": "array", "items": {"type": "number"}, "minItems": 1,
                      "maxItems": 8})",
                  .api = "list of number",
                  .read = [](const Fields&, EarlierTrial&) { return Result<void>(); },
                  .write = write_values},
                 "instead of value: one number for each objective");
    return table;
}

Result<void> read_earlier_trials(const Fields& fields, WarmStartConfig& warm_start) {
    const Node* trials = fields.find("trials");
    if (trials == nullptr) return {};
    const std::string path = fields.path_of("trials");
    if (trials->type != Node::Type::kList || trials->items.size() > kWarmStartMax)
        return error_at(trials->place, path,
                        "expected a list of at most " + std::to_string(kWarmStartMax) +
                            " trials {params: {...}, value: NUMBER}");
    for (const Node& item : trials->items) {
        TUNE_TRY(inner, Fields::open(item, path, earlier_trial_options().names()));
        EarlierTrial trial;
        TUNE_TRY_VOID(earlier_trial_options().read(inner, &trial));
        warm_start.trials.push_back(std::move(trial));
    }
    return {};
}

void write_earlier_trials(const WarmStartConfig& warm_start, Json& json) {
    for (const EarlierTrial& trial : warm_start.trials) {
        Json item = Json::object();
        earlier_trial_options().write(&trial, item);
        json["trials"].push_back(std::move(item));
    }
}

Result<void> read_said(const Fields& fields, WarmStartConfig& warm_start) {
    const Node* notes = fields.find("notes");
    if (notes != nullptr && notes->type == Node::Type::kList)
        for (const Node& item : notes->items) warm_start.notes.push_back(item.text);
    return {};
}

OptionTable warm_start_rows() {
    TableOf<WarmStartConfig> table;
    table.text("from", &WarmStartConfig::from, kStudyNameBytesMax,
               "name of an earlier study of the same server");
    table.integer("top", &WarmStartConfig::top, 0, kWarmStartMax,
                  "number of its best points that are tried first");
    table.integer("history", &WarmStartConfig::history, 0, kWarmStartMax,
                  "number of its trials that the sampler learns from at the start");
    table.custom("trials",
                 {.type = "list of maps",
                  .schema = R"({"type": "array", "maxItems": )" + std::to_string(kWarmStartMax) +
                            R"(, "items": {"$ref": "#/definitions/earlier_trial"}})",
                  .api = "list of EarlierTrial",
                  .read = read_earlier_trials,
                  .write = write_earlier_trials},
                 "trials of any origin instead, best first");
    table.custom("notes",
                 {.type = "list of texts",
                  .schema = R"({"type": "array"})",
                  .api = "list of text",
                  .read = read_said,
                  .write =
                      [](const WarmStartConfig& warm_start, Json& json) {
                          if (!warm_start.notes.empty()) json["notes"] = warm_start.notes;
                      }},
                 "what did not fit the new space; written, not given");
    return table;
}

}  // namespace

const OptionTable& earlier_trial_options() {
    static const OptionTable kOptions = earlier_trial_rows();
    return kOptions;
}

const OptionTable& warm_start_options() {
    static const OptionTable kOptions = warm_start_rows();
    return kOptions;
}

Result<void> read_warm_start(const Node& node, StudyConfig& config) {
    WarmStartConfig warm_start;
    if (node.type == Node::Type::kString) {
        TUNE_TRY_VOID(check_text(node, "warm_start", kStudyNameBytesMax));
        warm_start.from = node.text;
    } else {
        TUNE_TRY(fields, Fields::open(node, "warm_start", warm_start_options().names()));
        TUNE_TRY_VOID(warm_start_options().read(fields, &warm_start));
    }
    if (warm_start.from.empty() && warm_start.trials.empty())
        return error_at(node.place, "warm_start",
                        "expected {from: STUDY, top: 10}, or trials: a list of "
                        "{params: {...}, value: NUMBER}");
    config.warm_start = std::move(warm_start);
    return {};
}

Json to_json(const WarmStartConfig& warm_start) {
    Json json = Json::object();
    warm_start_options().write(&warm_start, json);
    return json;
}

}  // namespace tune::tuner
