// A Katib Experiment (kubeflow.org/v1beta1) as a study.
//
// Numbers are texts in Katib's YAML and are parsed as such. Where Katib hands a space to Hyperopt,
// the study gets what Hyperopt would get: `normal` is centred with a sixth of the range as its
// deviation (pkg/suggestion/v1beta1/hyperopt). Settings with a counterpart are translated, the
// others are listed as notes with their place, so that nothing is dropped silently; a distribution
// without a counterpart is an error.

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "tuner/interop/foreign/builder.h"
#include "tuner/space/error_text.h"

namespace tune::tuner {
namespace {

const Node* at(const Node* node, std::initializer_list<const char*> path) {
    for (const char* key : path) node = node == nullptr ? nullptr : node->find(key);
    return node;
}

Result<Json> numeric_spec(const Entry* distribution, const Node& space, const Node& parameter,
                          const std::string& name, bool is_integer, StudyBuilder& builder) {
    const Node* least = space.find("min");
    const Node* most = space.find("max");
    if (least == nullptr || most == nullptr)
        return error_at(space.place, name, "'min' and 'max' are missing");
    TUNE_TRY(low, number_in(*least, name + ".min"));
    TUNE_TRY(high, number_in(*most, name + ".max"));
    double step = 0;
    if (const Node* given = space.find("step")) {
        TUNE_TRY(number, number_in(*given, name + ".step"));
        step = number;
    }
    const std::string kind = distribution == nullptr ? "uniform" : distribution->value.text;
    const bool is_log = kind == "logUniform" || kind == "logNormal";
    if (kind != "uniform" && kind != "normal" && !is_log)
        return error_at(distribution->place, name,
                        "distribution " + in_quotes(kind) + " has no counterpart");
    if (is_log && low <= 0) return error_at(least->place, name, "a log scale needs bounds above 0");
    Json spec = Json::object();
    if (is_integer)
        spec["int"] = {static_cast<std::int64_t>(low), static_cast<std::int64_t>(high)};
    else
        spec["float"] = {low, high};
    if (step > 0 && is_log && !is_integer)
        builder.note(parameter.place,
                     name + ": its step is left out; a float on a log scale has none");
    else if (step > (is_integer ? 1 : 0) && low < high)
        spec["step"] = is_integer ? Json(static_cast<std::int64_t>(step)) : Json(step);
    // What Katib gives Hyperopt: the middle, and a sixth of the range.
    if (kind == "normal") spec["normal"] = {(low + high) / 2, (high - low) / 6};
    if (kind == "logNormal")
        spec["lognormal"] = {std::exp((std::log(low) + std::log(high)) / 2),
                             (std::log(high) - std::log(low)) / 6};
    if (kind == "logUniform") spec["log"] = true;
    return spec;
}

Result<void> read_parameter(const Node& parameter, StudyBuilder& builder) {
    const Node* name = parameter.find("name");
    const Node* type = parameter.find("parameterType");
    const Node* space = parameter.find("feasibleSpace");
    if (name == nullptr || type == nullptr || space == nullptr)
        return error_at(parameter.place, "parameters",
                        "expected name, parameterType and feasibleSpace");
    if (type->text == "categorical" || type->text == "discrete") {
        const Node* list = space->find("list");
        if (list == nullptr || list->type != Node::Type::kList)
            return error_at(space->place, name->text, "'list' is missing");
        Json values = Json::array();
        for (const Node& item : list->items) {
            if (type->text == "categorical") {
                values.push_back(to_json(item));
                continue;
            }
            TUNE_TRY(number, number_in(item, name->text + ".list"));
            values.push_back(number_json(number));
        }
        return builder.add(parameter.place, name->text, {{"choice", values}}, nullptr);
    }
    const bool is_integer = type->text == "int";
    if (!is_integer && type->text != "double")
        return error_at(type->place, name->text,
                        "parameterType " + in_quotes(type->text) + " has no counterpart");
    const Entry* distribution = nullptr;
    for (const Entry& entry : space->entries)
        if (entry.key == "distribution") distribution = &entry;
    TUNE_TRY(spec, numeric_spec(distribution, *space, parameter, name->text, is_integer, builder));
    return builder.add(parameter.place, name->text, std::move(spec), nullptr);
}

/// algorithmSettings is a list of {name, value}: those that are settings of ours, by name; the
/// others are said.
Result<void> take_settings(const Node* owner, const std::string& path,
                           const std::vector<std::pair<const char*, const char*>>& names,
                           Json& into, StudyBuilder& builder) {
    const Node* settings = at(owner, {"algorithmSettings"});
    if (settings == nullptr) return {};
    for (const Node& setting : settings->items) {
        const Node* name = setting.find("name");
        const Node* value = setting.find("value");
        if (name == nullptr || value == nullptr) continue;
        const auto found = std::find_if(names.begin(), names.end(), [&](const auto& known) {
            return name->text == known.first;
        });
        const std::string whole = path + ".algorithmSettings." + shortened(name->text);
        if (found == names.end()) {
            builder.note(setting.place, "not carried over: " + whole);
            continue;
        }
        TUNE_TRY(number, number_in(*value, whole));
        into[found->second] = number_json(number);
    }
    return {};
}

Result<void> read_algorithm(const Node* algorithm, StudyBuilder& builder) {
    const Node* name = at(algorithm, {"algorithmName"});
    if (name == nullptr) return {};
    const std::string& is = name->text;
    const char* type = is == "tpe" || is == "multivariate-tpe" ? "tpe"
                       : is == "bayesianoptimization"          ? "gp"
                       : is == "random"                        ? "random"
                       : is == "grid"                          ? "grid"
                       : is == "sobol"                         ? "qmc"
                       : is == "cmaes"                         ? "cmaes"
                       : is == "pbt"                           ? "pbt"
                       : is == "hyperband"                     ? "random"
                                                               : nullptr;
    Json sampler = {{"type", type == nullptr ? "tpe" : type}};
    if (type == nullptr)
        builder.note(name->place,
                     "algorithm " + in_quotes(is) + " has no counterpart; tpe is used");
    if (is == "hyperband") {
        Json pruner = {{"type", "hyperband"}};
        TUNE_TRY_VOID(take_settings(algorithm, "spec.algorithm", {{"eta", "eta"}, {"r_l", "max"}},
                                    pruner, builder));
        builder.note(name->place,
                     "hyperband: trials are pruned by the steps that they report, and train with "
                     "the parameter of resource_name at its greatest, which is yours to set");
        builder.set("pruner", pruner);
    } else {
        std::vector<std::pair<const char*, const char*>> names = {{"random_state", "seed"}};
        if (is == "tpe" || is == "multivariate-tpe")
            names.emplace_back("n_EI_candidates", "candidates");
        if (is == "bayesianoptimization") names.emplace_back("n_initial_points", "startup");
        if (is == "pbt")
            names = {{"n_population", "population"},
                     {"resample_probability", "resample_probability"},
                     {"truncation_threshold", "quantile"}};
        TUNE_TRY_VOID(take_settings(algorithm, "spec.algorithm", names, sampler, builder));
    }
    if (type != nullptr || sampler.size() > 1) builder.set("sampler", sampler);
    return {};
}

Result<void> read_stopping(const Node* stopping, StudyBuilder& builder) {
    if (stopping == nullptr) return {};
    const Node* name = stopping->find("algorithmName");
    if (name == nullptr || name->text != "medianstop") {
        builder.note(stopping->place, "not carried over: spec.earlyStopping");
        return {};
    }
    // Katib's own defaults: pkg/earlystopping/v1beta1/medianstop/service.py.
    Json pruner = {{"type", "median"}, {"startup", 3}, {"warmup", 4}};
    TUNE_TRY_VOID(take_settings(stopping, "spec.earlyStopping",
                                {{"min_trials_required", "startup"}, {"start_step", "warmup"}},
                                pruner, builder));
    note_median(builder, stopping->place);
    builder.set("pruner", pruner);
    return {};
}

Result<void> read_objective(const Node* objective, Json& budget, StudyBuilder& builder) {
    const Node* metric = at(objective, {"objectiveMetricName"});
    if (metric == nullptr) return {};
    const Node* type = at(objective, {"type"});
    builder.set("metric", {{"name", to_json(*metric)},
                           {"goal", type != nullptr && type->text == "maximize" ? "max" : "min"}});
    if (const Node* goal = objective->find("goal")) {
        TUNE_TRY(target, number_in(*goal, "spec.objective.goal"));
        budget["target"] = number_json(target);
    }
    note_others(builder, *objective, {"type", "objectiveMetricName", "goal"}, "spec.objective");
    return {};
}

/// ${trialParameters.learningRate} names a reference to a parameter.
void read_command(const Node& spec, StudyBuilder& builder) {
    const Node* containers =
        at(&spec, {"trialTemplate", "trialSpec", "spec", "template", "spec", "containers"});
    if (containers == nullptr || containers->items.empty()) return;
    Json words = Json::array();
    for (const char* key : {"command", "args"})
        if (const Node* list = containers->items[0].find(key))
            for (const Node& item : list->items) words.push_back(to_json(item));
    const Node* names = at(&spec, {"trialTemplate", "trialParameters"});
    for (Json& word : words) {
        if (!word.is_string() || names == nullptr) continue;
        auto text = word.get<std::string>();
        for (const Node& one : names->items) {
            const Node* name = one.find("name");
            const Node* reference = one.find("reference");
            if (name == nullptr || reference == nullptr) continue;
            const std::string placeholder = "${trialParameters." + name->text + "}";
            for (std::size_t i = text.find(placeholder); i != std::string::npos;
                 i = text.find(placeholder, i + 1))
                text.replace(i, placeholder.size(), "{" + reference->text + "}");
        }
        word = text;
    }
    if (!words.empty()) builder.set("command", words);
}

}  // namespace

Result<void> read_katib(const Node& root, StudyBuilder& builder) {
    const Node* spec = root.find("spec");
    const Node* parameters = at(spec, {"parameters"});
    if (parameters == nullptr || parameters->type != Node::Type::kList)
        return error_at(root.place, "spec.parameters", "expected a list of parameters");
    if (const Node* name = at(&root, {"metadata", "name"})) builder.set("study", to_json(*name));
    read_command(*spec, builder);
    Json budget = Json::object();
    TUNE_TRY_VOID(read_objective(spec->find("objective"), budget, builder));
    for (const Node& parameter : parameters->items)
        TUNE_TRY_VOID(read_parameter(parameter, builder));
    TUNE_TRY_VOID(read_algorithm(spec->find("algorithm"), builder));
    TUNE_TRY_VOID(read_stopping(spec->find("earlyStopping"), builder));
    if (const Node* trials = spec->find("maxTrialCount")) budget["trials"] = to_json(*trials);
    if (const Node* parallel = spec->find("parallelTrialCount"))
        budget["parallel"] = to_json(*parallel);
    if (!budget.empty()) builder.set("budget", budget);
    note_others(builder, *spec,
                {"objective", "algorithm", "parameters", "parallelTrialCount", "maxTrialCount",
                 "earlyStopping", "trialTemplate"},
                "spec");
    return {};
}

}  // namespace tune::tuner
