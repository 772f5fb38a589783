// A study of the REST API as rows of Optuna's database, for `tune export --optuna`.
//
// Optuna has fewer states and no attempts: cancelled trials become FAIL with their state as an
// attribute, queued ones WAITING with fixed_params, so that Optuna runs them with the same values.
// Values that MLflow's stores cannot hold (infinity is kept as the greatest double) are given back.
// What Optuna has no place for goes along as attributes, from which an import here restores it.

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tuner/interop/optuna/distribution.h"
#include "tuner/interop/optuna/optuna_study.h"

namespace tune::tuner {
namespace {

/// What json_number wrote.
std::optional<double> real_from(const Json& value) {
    if (value.is_number()) return value.get<double>();
    if (!value.is_string()) return std::nullopt;
    const auto text = value.get<std::string>();
    if (text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
    return std::nullopt;
}

/// MLflow's stores keep an infinite metric as the greatest number there is.
double unclamped(double value) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    constexpr double kGreatest = std::numeric_limits<double>::max();
    if (value == kGreatest) return kInfinity;
    return value == -kGreatest ? -kInfinity : value;
}

const char* optuna_state(TrialState state) {
    switch (state) {
        case TrialState::kQueued: return "WAITING";
        case TrialState::kRunning: return "RUNNING";
        case TrialState::kComplete: return "COMPLETE";
        case TrialState::kPruned: return "PRUNED";
        case TrialState::kFailed:
        case TrialState::kCancelled: return "FAIL";
    }
    return "FAIL";
}

std::vector<double> values_of(const Json& trial) {
    std::vector<double> values;
    if (const auto several = trial.find("values"); several != trial.end() && several->is_array()) {
        for (const Json& value : *several)
            if (const auto real = real_from(value)) values.push_back(*real);
    } else if (const auto real = real_from(trial.value("value", Json()))) {
        values.push_back(*real);
    }
    return values;
}

/// Of several rows of a step the last one counts, as in Optuna.
std::vector<std::pair<std::int64_t, double>> steps_of(const Json& trial) {
    std::map<std::int64_t, double> steps;
    for (const Json& point : trial.value("intermediate", Json::array()))
        if (const auto value = real_from(point.at(1)))
            steps[point.at(0).get<std::int64_t>()] = unclamped(*value);
    return {steps.begin(), steps.end()};
}

void add_text(OptunaAttributes& attributes, const char* key, const Json& value) {
    if (value.is_string() && !value.get_ref<const std::string&>().empty())
        attributes.emplace_back(key, to_text(value));
}

/// Tags that people set, and what came from Optuna, as user attributes.
void add_tags(OptunaAttributes& attributes, const Json& tagged) {
    const Json tags = tagged.value("tags", Json::object());
    for (const auto& [key, value] : tags.items()) {
        const std::string_view name = key;
        if (name.starts_with("mlflow.") || name.starts_with("tune.") || name == "optuna.number")
            continue;
        const auto text = value.get<std::string>();
        const Result<Json> json = parse_json(text);
        attributes.emplace_back(key, json && !json->is_string() ? text : to_text(value));
    }
}

/// Optuna keeps how far a value lies beyond its bound, at most 0 when it holds; what was measured
/// goes along for us.
void add_constraints(const Json& trial, const Json& constraints, OptunaTrial& made) {
    const Json measured = trial.value("constraints", Json::object());
    if (measured.empty()) return;
    for (const Json& constraint : constraints) {
        const auto name = constraint.at("name").get<std::string>();
        const auto value = real_from(measured.value(name, Json()));
        if (!value) continue;
        double beyond = -std::numeric_limits<double>::infinity();
        if (constraint.contains("max")) beyond = *value - constraint["max"].get<double>();
        if (constraint.contains("min"))
            beyond = std::max(beyond, constraint["min"].get<double>() - *value);
        if (std::isfinite(beyond))
            made.system_attributes.emplace_back("constraints:" + name, to_text(Json(beyond)));
    }
    made.system_attributes.emplace_back("tune:constraints", to_text(measured));
}

Result<OptunaTrial> trial_to_optuna(const Json& json, const Space& space, const Json& constraints) {
    OptunaTrial trial;
    trial.number = json.at("number").get<std::int64_t>();
    TUNE_TRY(state, trial_state_from_name(json.at("state").get<std::string>()));
    trial.state = optuna_state(state);
    if (json.at("start_ms").is_number()) trial.start_ms = json["start_ms"].get<std::int64_t>();
    if (json.at("end_ms").is_number()) trial.complete_ms = json["end_ms"].get<std::int64_t>();
    if (is_ended(state) && trial.start_ms == 0) trial.start_ms = trial.complete_ms;
    trial.intermediate = steps_of(json);
    if (state == TrialState::kComplete || state == TrialState::kPruned)
        trial.values = values_of(json);
    // A pruned trial without a report has no value there either, and NaN is none.
    if (state == TrialState::kPruned && !trial.values.empty() && std::isnan(trial.values[0]))
        trial.values.clear();
    add_constraints(json, constraints, trial);
    TUNE_TRY(point, space.point_from_json(json.at("params")));
    if (state == TrialState::kQueued) {
        trial.start_ms = 0;
        Json fixed = Json::object();
        for (const auto& [name, value] : json["params"].items())
            if (space.find(name)) fixed[name] = value;  // not the derived ones
        trial.system_attributes.emplace_back("fixed_params", to_text(fixed));
    } else {
        for (std::size_t i = 0; i < space.size(); ++i)
            if (is_active(point[i]))
                trial.params.push_back({space[i].name, point[i], distribution_json(space[i])});
    }
    add_text(trial.user_attributes, "tune.run_id", json.value("run_id", Json()));
    add_text(trial.user_attributes, "tune.reason", json.value("reason", Json()));
    add_text(trial.user_attributes, "tune.worker", json.value("worker", Json()));
    if (state == TrialState::kCancelled)
        trial.user_attributes.emplace_back("tune.state", "\"cancelled\"");
    add_tags(trial.user_attributes, json);
    return trial;
}

}  // namespace

Result<OptunaStudy> to_optuna(const Json& study, const Json& trials) {
    try {
        Json metrics = study.value("metrics", study.at("metric"));
        Json described = {{"space", study.at("space")}, {"metric", metrics}};
        for (const char* key : {"space_order", "derive", "forbid", "initial", "sampler", "pruner",
                                "budget", "constraints"})
            if (study.contains(key)) described[key] = study[key];
        if (study.contains("command") && !study["command"].empty())
            described["command"] = study["command"];
        TUNE_TRY(config, study_config_from_json(described));
        OptunaStudy made;
        made.name = study.at("name").get<std::string>();
        if (!metrics.is_array()) metrics = Json::array({metrics});
        Json names = Json::array();
        for (const Json& metric : metrics) {
            made.is_maximized.push_back(metric.at("goal") == "max");
            names.push_back(metric.at("name"));
        }
        made.system_attributes = {{"study:metric_names", to_text(names)},
                                  {"tune:study", to_text(described)}};
        add_text(made.user_attributes, "tune.run_id", study.value("run_id", Json()));
        add_text(made.user_attributes, "tune.note", study.value("note", Json()));
        add_tags(made.user_attributes, study);
        for (const Json& trial : trials) {
            TUNE_TRY(one, trial_to_optuna(trial, config.space,
                                          study.value("constraints", Json::array())));
            made.trials.push_back(std::move(one));
        }
        return made;
    } catch (const Json::exception& error) {
        return Error{Code::kInvalidParameterValue,
                     std::string("the server's response is not a study: ") + error.what()};
    }
}

}  // namespace tune::tuner
