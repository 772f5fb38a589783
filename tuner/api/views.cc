// Studies and trials as the JSON that every reader of them gets. Nothing is kept but the copy of
// the configuration, which is made anew when that has changed, so an answer shows one state.

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
void add_more_values(const StudyConfig& config, const TrialCopy& trial, Json& json) {
    if (trial.now) json["values_now"] = values_json(trial.now->value, trial.now->more_values);
    if (trial.state != TrialState::kComplete) return;
    if (trial.value && !trial.more_values.empty())
        json["values"] = values_json(*trial.value, trial.more_values);
    if (config.constraints.empty()) return;
    for (std::size_t i = 0; i < config.constraints.size(); ++i)
        json["constraints"][config.constraints[i].metric.name] =
            json_number(trial.constraint_values[i]);
    json["violation"] = json_number(violation_of(config.constraints, trial.constraint_values));
}

/// The state, as it is: one that nobody works on is not said to run.
std::string_view status_of(const Study& study) {
    if (study.is_experiment_deleted()) return "deleted";
    if (study.state() != StudyState::kRunning || study.attendance().is_attended)
        return study_state_name(study.state());
    return study.trials().empty() ? "waiting" : "interrupted";
}

StudyCopy::Best best_of(const Study& study, const Trial& best) {
    StudyCopy::Best copy{copy_of(study, best), {}};
    // The schedule of its parameters is what population based training finds.
    for (const Trial* trial : lineage_of(study, best, kLineageShownMax))
        copy.lineage.push_back(copy_of(study, *trial));
    return copy;
}

Json best_json(const StudyConfig& config, const std::optional<StudyCopy::Best>& best) {
    if (!best) return nullptr;
    const TrialCopy& trial = best->trial;
    Json json = {{"number", trial.number},
                 {"value", value_json(trial.value)},
                 {"params", config.space.to_json(trial.point)},
                 {"run_id", trial.run_id}};
    add_more_values(config, trial, json);
    if (!trial.origin) return json;
    add_origin(*trial.origin, *trial.steps, json);
    for (const TrialCopy& one : best->lineage)
        json["lineage"].push_back({{"number", one.number},
                                   {"value", value_json(one.value)},
                                   {"params", config.space.to_json(one.point)},
                                   {"steps", {one.steps->from, one.steps->to}}});
    return json;
}

void add_front(const StudyCopy& study, Json& json) {
    Json metrics = Json::array();
    for (const MetricConfig& metric : metrics_of(*study.config)) metrics.push_back(to_json(metric));
    json["metrics"] = std::move(metrics);
    Json front = Json::array();
    for (const StudyCopy::Best& best : study.front) front.push_back(best_json(*study.config, best));
    json["best_trials"] = std::move(front);
}

}  // namespace

void add_origin(const Origin& origin, const Steps& steps, Json& json) {
    json["parent"] = origin.parent ? Json(*origin.parent) : Json(nullptr);
    json["member"] = origin.member;
    json["generation"] = origin.generation;
    json["steps"] = {steps.from, steps.to};
}

TrialCopy copy_of(const Study& study, const Trial& trial) {
    TrialCopy copy{.number = trial.number,
                   .state = trial.state,
                   .attempt = trial.attempt,
                   .run_id = trial.run_id,
                   .point = trial.point,
                   .value = trial.value,
                   .more_values = trial.more_values,
                   .constraint_values = trial.constraint_values,
                   .reason = trial.reason,
                   .start_ms = trial.start_ms,
                   .end_ms = trial.end_ms,
                   .ran_ms = trial.ran_ms,
                   .attempt_start_ms = trial.attempt_start_ms,
                   .worker = trial.worker,
                   .cost = trial.cost,
                   .reused_from = trial.reused_from,
                   .origin = trial.origin,
                   .steps = steps_of(study, trial),
                   .now = {}};
    if (!trial.progress) return copy;
    if (!study.config().more_metrics.empty()) copy.now = trial.progress->metrics.outcome().result;
    copy.last = trial.progress->metrics.first().last();
    return copy;
}

StudyCopy copy_of(const Study& study) {
    StudyCopy copy{.identity = study.identity(),
                   .config = study.definition().shared_config(),
                   .state = study.state(),
                   .status = status_of(study),
                   .note = study.status().note,
                   .obstacle = {},
                   .end = study.status().end,
                   .priority = study.definition().priority(),
                   .user = study.definition().user(),
                   .started_ms = study.budget().started_ms(),
                   .counts = study.trials().counts(),
                   .trials = study.trials().size(),
                   .excused = study.beginning().count(),
                   .version = study.version(),
                   .best = {},
                   .front = {},
                   .registered = {}};
    if (!study.registration().is_wanted()) copy.registered = study.registration().last();
    if (study.trials().running().empty()) copy.obstacle = study.attendance().obstacle;
    if (copy.config->budget.cost) copy.paid = study.budget().paid();
    if (const Trial* const best = study.front().best()) copy.best = best_of(study, *best);
    if (copy.config->more_metrics.empty()) return copy;
    for (const Trial* trial : study.front().trials()) {
        if (copy.front.size() == kFrontShownMax) break;
        copy.front.push_back(best_of(study, *trial));
    }
    return copy;
}

Json study_json(const StudyCopy& study) {
    const StudyIdentity& identity = study.identity;
    const StudyConfig& config = *study.config;
    Json counts = Json::object();
    for (std::size_t i = 0; i < kTrialStateCount; ++i)
        counts[std::string(trial_state_name(static_cast<TrialState>(i)))] = study.counts[i];
    Json whole = to_json(config);
    Json json = {{"name", identity.name},
                 {"study_id", identity.id},
                 {"experiment_id", std::to_string(identity.experiment_id)},
                 {"run_id", identity.run_id},
                 {"state", study_state_name(study.state)},
                 {"status", study.status},
                 {"note", study.note},
                 {"ended_by",
                  study.end == StudyEnd::kNone ? Json(nullptr) : Json(study_end_name(study.end))},
                 {"metric", to_json(config.metric)},
                 {"space", config.space.to_json()},
                 {"sampler", to_json(config.sampler)},
                 {"pruner", to_json(config.pruner)},
                 {"budget", to_json(config.budget)},
                 {"resources", to_json(config.resources)},
                 {"command", config.command},
                 {"priority", study.priority},
                 {"user", study.user},
                 {"created_ms", identity.created_ms},
                 {"started_ms", time_json(study.started_ms)},
                 {"counts", std::move(counts)},
                 {"trials", study.trials},
                 {"version", study.version},
                 {"best", best_json(config, study.best)}};
    if (study.state == StudyState::kRunning && !study.obstacle.empty())
        json["waits_for"] = study.obstacle;
    if (config.budget.cost) json["cost"] = study.paid;
    if (study.excused > 0) json["excused"] = study.excused;
    if (whole.contains("warm_start")) json["warm_start"] = std::move(whole["warm_start"]);
    if (!config.register_as.empty()) json["register"] = config.register_as;
    if (study.registered) json["registered"] = to_json(*study.registered);
    if (std::string outlook = sampler_outlook(config); !outlook.empty())
        json["sampler_choice"] = std::move(outlook);
    for (const char* key : {"space_order", "forbid", "derive", "initial"})
        if (whole.contains(key)) json[key] = std::move(whole[key]);
    if (!config.constraints.empty()) json["constraints"] = to_json(config.constraints);
    if (!config.more_metrics.empty()) add_front(study, json);
    return json;
}

Json trial_json(const StudyConfig& config, const TrialCopy& trial) {
    Json json = {{"number", trial.number},
                 {"state", trial_state_name(trial.state)},
                 {"attempt", trial.attempt},
                 {"run_id", trial.run_id},
                 {"params", config.space.to_json(trial.point)},
                 {"value", value_json(trial.value)},
                 {"reason", trial.reason},
                 {"start_ms", time_json(trial.start_ms)},
                 {"end_ms", time_json(trial.end_ms)},
                 {"ran_ms", trial.ran_ms},
                 {"worker", trial.worker}};
    if (trial.state == TrialState::kRunning) json["attempt_start_ms"] = trial.attempt_start_ms;
    if (config.budget.cost) json["cost"] = trial.cost;
    if (trial.reused_from) json["reused_from"] = *trial.reused_from;
    if (trial.origin) add_origin(*trial.origin, *trial.steps, json);
    add_more_values(config, trial, json);
    if (trial.last) json["intermediate_last"] = {trial.last->step, json_number(trial.last->value)};
    return json;
}

}  // namespace tune::tuner
