// Studies and trials as the JSON that every reader of them gets. It is written from the study
// itself under its lock and nothing is kept, so an answer never differs from the state that it
// shows.

#include "tuner/api/views.h"
#include "tuner/study/journal/journal.h"

#include <nlohmann/json.hpp>

#include "tuner/study/trial/lineage.h"

namespace tune::tuner {
namespace {

Json value_json(const std::optional<double>& value) {
    return value ? json_number(*value) : Json(nullptr);
}

Json time_json(std::int64_t time_ms) {
    return time_ms != 0 ? Json(time_ms) : Json(nullptr);
}

Json values_json(double first, const std::vector<double>& more) {
    Json values = Json::array({json_number(first)});
    for (const double value : more) values.push_back(json_number(value));
    return values;
}

/// What a trial of several objectives or with constraints has besides its value.
void add_more_values(const Study& study, const Trial& trial, Json& json) {
    const StudyConfig& config = study.config();
    if (trial.progress && !config.more_metrics.empty())
        if (const auto now = trial.progress->metrics.outcome().result)
            json["values_now"] = values_json(now->value, now->more_values);
    if (trial.state != TrialState::kComplete) return;
    if (trial.value && !trial.more_values.empty())
        json["values"] = values_json(*trial.value, trial.more_values);
    if (config.constraints.empty()) return;
    for (std::size_t i = 0; i < config.constraints.size(); ++i)
        json["constraints"][config.constraints[i].metric.name] =
            json_number(trial.constraint_values[i]);
    json["violation"] = json_number(violation_of(trial, config));
}

/// The state, as it is: one that nobody works on is not said to run.
std::string_view status_of(const Study& study) {
    if (study.is_experiment_deleted()) return "deleted";
    if (study.state() != StudyState::kRunning || study.is_attended())
        return study_state_name(study.state());
    return study.trials().empty() ? "waiting" : "interrupted";
}

Json best_json(const Study& study, const Trial* best) {
    if (best == nullptr) return nullptr;
    Json json = {{"number", best->number},
                 {"value", value_json(best->value)},
                 {"params", study.config().space.to_json(best->point)},
                 {"run_id", best->run_id}};
    add_more_values(study, *best, json);
    if (!best->origin) return json;
    add_origin(*best->origin, *steps_of(study, *best), json);
    // The schedule of its parameters is what population based training finds.
    for (const Trial* trial : lineage_of(study, *best, kLineageShownMax)) {
        const Steps steps = *steps_of(study, *trial);
        json["lineage"].push_back({{"number", trial->number},
                                   {"value", value_json(trial->value)},
                                   {"params", study.config().space.to_json(trial->point)},
                                   {"steps", {steps.from, steps.to}}});
    }
    return json;
}

void add_front(const Study& study, Json& json) {
    Json metrics = Json::array();
    for (const MetricConfig& metric : metrics_of(study.config()))
        metrics.push_back(to_json(metric));
    json["metrics"] = std::move(metrics);
    Json front = Json::array();
    for (const Trial* trial : study.best_trials()) {
        if (front.size() == kFrontShownMax) break;
        front.push_back(best_json(study, trial));
    }
    json["best_trials"] = std::move(front);
}

}  // namespace

void add_origin(const Origin& origin, const Steps& steps, Json& json) {
    json["parent"] = origin.parent ? Json(*origin.parent) : Json(nullptr);
    json["member"] = origin.member;
    json["generation"] = origin.generation;
    json["steps"] = {steps.from, steps.to};
}

Json study_json(const Study& study) {
    const StudyIdentity& identity = study.identity();
    const StudyConfig& config = study.config();
    Json counts = Json::object();
    for (std::size_t i = 0; i < kTrialStateCount; ++i)
        counts[std::string(trial_state_name(static_cast<TrialState>(i)))] = study.counts()[i];
    Json whole = to_json(config);
    Json json = {{"name", identity.name},
                 {"study_id", identity.id},
                 {"experiment_id", std::to_string(identity.experiment_id)},
                 {"run_id", identity.run_id},
                 {"state", study_state_name(study.state())},
                 {"status", status_of(study)},
                 {"note", study.note()},
                 {"ended_by", study.end() == StudyEnd::kNone ? Json(nullptr)
                                                             : Json(study_end_name(study.end()))},
                 {"metric", to_json(config.metric)},
                 {"space", config.space.to_json()},
                 {"sampler", to_json(config.sampler)},
                 {"pruner", to_json(config.pruner)},
                 {"budget", to_json(config.budget)},
                 {"resources", to_json(config.resources)},
                 {"command", config.command},
                 {"priority", study.priority()},
                 {"user", study.user()},
                 {"created_ms", identity.created_ms},
                 {"started_ms", time_json(study.started_ms())},
                 {"counts", std::move(counts)},
                 {"trials", study.trials().size()},
                 {"version", study.version()},
                 {"best", best_json(study, study.best())}};
    const bool is_waiting = study.state() == StudyState::kRunning && study.running().empty();
    if (is_waiting && !study.obstacle().empty()) json["waits_for"] = study.obstacle();
    if (config.budget.cost) json["cost"] = study.paid();
    if (study.excused_count() > 0) json["excused"] = study.excused_count();
    if (whole.contains("warm_start")) json["warm_start"] = std::move(whole["warm_start"]);
    if (!config.register_as.empty()) json["register"] = config.register_as;
    if (study.registration() && !study.wants_registration())
        json["registered"] = to_json(*study.registration());
    if (std::string outlook = sampler_outlook(config); !outlook.empty())
        json["sampler_choice"] = std::move(outlook);
    for (const char* key : {"space_order", "forbid", "derive", "initial"})
        if (whole.contains(key)) json[key] = std::move(whole[key]);
    if (!config.constraints.empty()) json["constraints"] = to_json(config.constraints);
    if (!config.more_metrics.empty()) add_front(study, json);
    return json;
}

Json trial_json(const Study& study, const Trial& trial) {
    Json json = {{"number", trial.number},
                 {"state", trial_state_name(trial.state)},
                 {"attempt", trial.attempt},
                 {"run_id", trial.run_id},
                 {"params", study.config().space.to_json(trial.point)},
                 {"value", value_json(trial.value)},
                 {"reason", trial.reason},
                 {"start_ms", time_json(trial.start_ms)},
                 {"end_ms", time_json(trial.end_ms)},
                 {"ran_ms", trial.ran_ms},
                 {"worker", trial.worker}};
    if (trial.state == TrialState::kRunning) json["attempt_start_ms"] = trial.attempt_start_ms;
    if (study.config().budget.cost) json["cost"] = trial.cost;
    if (trial.reused_from) json["reused_from"] = *trial.reused_from;
    if (trial.origin) add_origin(*trial.origin, *steps_of(study, trial), json);
    add_more_values(study, trial, json);
    if (!trial.progress) return json;
    if (const auto last = trial.progress->metrics.first().last())
        json["intermediate_last"] = {last->step, json_number(last->value)};
    return json;
}

}  // namespace tune::tuner
