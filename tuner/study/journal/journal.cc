// Commands and documents of a study. The document holds what a restart needs; the MLflow run beside
// it shows the same to other tools and may be edited by users. Both change in one transaction, so
// they agree after a crash. Fields that earlier versions did not write have defaults.

#include "tuner/study/journal/journal.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/limits.h"
#include "base/text/number_text.h"
#include "base/text/python_text.h"
#include "tracker/store/metrics/metric_goal.h"

namespace tune::tuner {
namespace {

using tracker::Command;
using tracker::Tag;

/// By which MLflow's page shows whose run it is.
constexpr const char* kUserTag = "mlflow.user";
/// The trial's value as a metric of its run: the objective's history may hold better or later rows.
constexpr const char* kValueMetric = "tune.value";
/// How far it lies beyond the constraints' bounds.
constexpr const char* kViolationMetric = "tune.violation";
/// Bytes of the list of a Pareto front's trials that a tag shows; the API gives them all.
constexpr std::size_t kBestNumbersMax = 4000;

tracker::RunStatus run_status(StudyState state) {
    switch (state) {
        case StudyState::kRunning: return tracker::RunStatus::kRunning;
        case StudyState::kPaused: return tracker::RunStatus::kScheduled;
        case StudyState::kStopped: return tracker::RunStatus::kKilled;
        case StudyState::kCompleted: return tracker::RunStatus::kFinished;
    }
    return tracker::RunStatus::kRunning;
}

Registration registration_from_json(const Json& json) {
    return {.name = json.at("name").get<std::string>(),
            .trial = json.at("trial").get<std::uint64_t>(),
            .version = json.value("version", std::int64_t{0}),
            .model_id = json.value("model_id", ""),
            .error = json.value("error", "")};
}

Command study_document_command(const Study& study) {
    const StudyIdentity& identity = study.identity();
    Json document = {{"name", identity.name},
                     {"id", identity.id},
                     {"run_id", identity.run_id},
                     {"experiment_id", identity.experiment_id},
                     {"seed", identity.seed},
                     {"created_ms", identity.created_ms},
                     {"started_ms", study.budget().started_ms()},
                     {"state", study_state_name(study.state())},
                     {"config", to_json(study.config())}};
    if (!identity.user.empty()) document["user"] = identity.user;
    if (!identity.owner.empty()) document["owner"] = identity.owner;
    if (!study.status().note.empty()) document["note"] = study.status().note;
    if (study.status().end != StudyEnd::kNone)
        document["ended_by"] = study_end_name(study.status().end);
    if (study.registration().last()) document["registered"] = to_json(*study.registration().last());
    if (!study.beginning().ends().empty()) document["excused"] = to_json(study.beginning().ends());
    for (const StudyEpoch& epoch : study.definition().earlier()) {
        StudyConfig of_epoch;  // its order of parameters is kept with it
        of_epoch.space = epoch.space;
        of_epoch.sampler = epoch.sampler;
        document["earlier"].push_back({{"until", epoch.until}, {"config", to_json(of_epoch)}});
    }
    return tracker::PutDocument{kStudyCollection, identity.name, to_text(document)};
}

std::vector<Tag> study_tags(const Study& study) {
    std::string names;
    std::string goals;
    for (const MetricConfig& metric : metrics_of(study.config())) {
        names += (names.empty() ? "" : ", ") + metric.name;
        goals += (goals.empty() ? "" : ", ") + std::string(goal_name(metric.goal));
    }
    std::vector<Tag> tags = {{"tune.study", study.name()},
                             {"tune.kind", "study"},
                             {"tune.state", std::string(study_state_name(study.state()))},
                             {"tune.metric", std::move(names)},
                             {"tune.goal", std::move(goals)}};
    if (const auto& registered = study.registration().last(); registered && registered->version > 0)
        tags.push_back(
            {"tune.registered", registered->name + "/" + std::to_string(registered->version)});
    return tags;
}

std::vector<Tag> trial_state_tags(const Trial& trial) {
    std::vector<Tag> tags = {{"tune.state", std::string(trial_state_name(trial.state))},
                             {"tune.attempt", std::to_string(trial.attempt)}};
    if (!trial.reason.empty()) tags.push_back({"tune.reason", trial.reason});
    if (!trial.worker.empty()) tags.push_back({"tune.worker", trial.worker});
    if (trial.reused_from) tags.push_back({"tune.reused_from", std::to_string(*trial.reused_from)});
    if (trial.origin && trial.origin->parent)
        tags.push_back({"tune.parent_trial", std::to_string(*trial.origin->parent)});
    return tags;
}

void add_finish_tags(std::vector<Tag>& tags, const FinishRequest& finish) {
    if (finish.exit_code) tags.push_back({"tune.exit_code", std::to_string(*finish.exit_code)});
    if (finish.signal) tags.push_back({"tune.signal", std::to_string(*finish.signal)});
    if (finish.wall_ms > 0) tags.push_back({"tune.wall_ms", std::to_string(finish.wall_ms)});
    if (finish.cpu_ms > 0) tags.push_back({"tune.cpu_ms", std::to_string(finish.cpu_ms)});
    if (finish.max_rss_kb > 0)
        tags.push_back({"tune.max_rss_kb", std::to_string(finish.max_rss_kb)});
    if (finish.peak_memory_bytes > 0)
        tags.push_back({"tune.peak_memory_bytes", std::to_string(finish.peak_memory_bytes)});
    if (finish.peak_gpu_memory_bytes > 0)
        tags.push_back(
            {"tune.peak_gpu_memory_bytes", std::to_string(finish.peak_gpu_memory_bytes)});
}

/// A completed study ended with its last trial, whenever that is written. A stopped one ends now.
std::int64_t end_of(const Study& study, std::int64_t now_ms) {
    const bool ended_by_itself = study.state() == StudyState::kCompleted;
    return ended_by_itself && study.trials().last_end_ms() != 0 ? study.trials().last_end_ms()
                                                                : now_ms;
}

/// The trial's params in batches that the store takes, as a Python program would log them; the
/// program may then log each in its own words. The exact values are in the trial's document. For a
/// later attempt the params stay, and may be logged once more, as may what an earlier attempt
/// logged of its own: it started at another time, on another host.
void add_params(std::vector<Command>& commands, const Study& study, const Trial& trial) {
    tracker::SuggestParams batch{.run_id = trial.run_id, .params = {}};
    const Json values = study.config().space.to_json(trial.point);
    for (const auto& [name, value] : values.items()) {
        batch.params.push_back({name, python_text(value)});
        if (batch.params.size() < kBatchParamsMax) continue;
        commands.push_back(std::exchange(batch, {.run_id = trial.run_id, .params = {}}));
    }
    batch.reopens = trial.attempt > 1;
    if (!batch.params.empty() || batch.reopens) commands.push_back(std::move(batch));
}

/// From now on points of what decides about the trial are of the attempt that runs, or of none.
Command mark_command(const Study& study, const Trial& trial) {
    if (is_ended(trial.state)) return tracker::MarkMetrics{.run_id = trial.run_id};
    std::vector<std::string> keys = measured_metrics(study.config());
    const auto& cost = study.config().budget.cost;
    if (cost && cost->of == CostBudget::Of::kMetric) keys.push_back(cost->metric);
    const bool is_running = trial.state == TrialState::kRunning;
    return tracker::MarkMetrics{.run_id = trial.run_id,
                                .keys = std::move(keys),
                                .mark = is_running ? trial.attempt : kNoAttemptMark};
}

/// A configuration as it was written. `preset` is always written now; without one a study of TPE
/// followed Optuna 5, and goes on so.
Result<StudyConfig> recorded_config(Json json) {
    const auto sampler = json.find("sampler");
    if (sampler != json.end() && sampler->is_object() && sampler->value("type", "") == "tpe")
        sampler->emplace("preset", "optuna5");
    return study_config_from_json(json);
}

std::unique_ptr<Study> read_study(const Json& document) {
    const Result<StudyConfig> config = recorded_config(document.at("config"));
    if (!config) throw std::runtime_error(config.error().text());
    StudyIdentity identity;
    identity.name = document.at("name").get<std::string>();
    identity.id = document.at("id").get<std::string>();
    identity.run_id = document.at("run_id").get<std::string>();
    identity.experiment_id = document.at("experiment_id").get<std::int64_t>();
    identity.seed = document.at("seed").get<std::uint64_t>();
    identity.created_ms = document.at("created_ms").get<std::int64_t>();
    identity.user = document.value("user", "");
    identity.owner = document.value("owner", "");
    const Result<StudyState> state = study_state_from_name(document.at("state").get<std::string>());
    if (!state) throw std::runtime_error(state.error().message);
    StudyRecord record{.status = {.state = *state,
                                  .note = document.value("note", ""),
                                  .end = study_end_from_name(document.value("ended_by", "none"))},
                       .started_ms = document.at("started_ms"),
                       .excused = excused_from_json(document.value("excused", Json::array()))};
    for (const Json& epoch : document.value("earlier", Json::array())) {
        Result<StudyConfig> of_epoch = recorded_config(epoch.at("config"));
        if (!of_epoch) throw std::runtime_error(of_epoch.error().text());
        record.earlier.push_back(
            {epoch.at("until"), std::move(of_epoch->space), std::move(of_epoch->sampler)});
    }
    auto study = std::make_unique<Study>(std::move(identity), *config);
    study->restore(std::move(record));
    if (document.contains("registered"))
        study->registration().set(registration_from_json(document.at("registered")));
    return study;
}

}  // namespace

Json to_json(const Registration& registration) {
    Json json = {{"name", registration.name}, {"trial", registration.trial}};
    if (registration.version > 0) {
        json["version"] = registration.version;
        json["model_id"] = registration.model_id;
    }
    if (!registration.error.empty()) json["error"] = registration.error;
    return json;
}

std::string trial_key_prefix(const StudyIdentity& study) {
    return study.id + "/";
}

std::string trial_key(const StudyIdentity& study, std::uint64_t number) {
    char digits[24];
    std::snprintf(digits, sizeof digits, "%08llu", static_cast<unsigned long long>(number));
    return trial_key_prefix(study) + digits;
}

std::vector<Command> create_study_commands(const Study& study) {
    const StudyIdentity& identity = study.identity();
    std::vector<Tag> tags = study_tags(study);
    if (!identity.user.empty()) tags.push_back({kUserTag, identity.user});
    std::vector<Command> commands = {tracker::CreateRun{.experiment_id = identity.experiment_id,
                                                        .run_id = identity.run_id,
                                                        .run_name = identity.name,
                                                        .user_id = identity.user,
                                                        .start_time_ms = identity.created_ms,
                                                        .tags = std::move(tags),
                                                        .status = run_status(study.state())}};
    // What `metrics.<objective>.best` means in searches of the experiment.
    for (const MetricConfig& metric : metrics_of(study.config())) {
        std::string goal_tag = std::string(tracker::kMetricGoalTag) + metric.name;
        if (goal_tag.size() > kKeyCharsMax) continue;
        commands.push_back(tracker::SetExperimentTag{
            identity.experiment_id, {std::move(goal_tag), std::string(goal_name(metric.goal))}});
    }
    commands.push_back(study_document_command(study));
    return commands;
}

std::vector<Command> update_study_commands(const Study& study, std::int64_t now_ms) {
    const std::string& run_id = study.identity().run_id;
    tracker::UpdateRun update{.run_id = run_id, .status = run_status(study.state())};
    if (tracker::is_terminal(*update.status)) update.end_time_ms = end_of(study, now_ms);
    return {
        std::move(update),
        tracker::LogBatch{.run_id = run_id, .metrics = {}, .params = {}, .tags = study_tags(study)},
        study_document_command(study)};
}

Command best_trial_command(const Study& study, std::int64_t now_ms) {
    tracker::LogBatch batch{.run_id = study.identity().run_id};
    if (study.front().best() == nullptr) {
        std::string numbers;
        for (const Trial* trial : study.front().trials()) {
            if (numbers.size() > kBestNumbersMax) {
                numbers += ", ...";
                break;
            }
            numbers += (numbers.empty() ? "" : ", ") + std::to_string(trial->number);
        }
        batch.tags = {{"tune.best_trials", std::move(numbers)}};
        return batch;
    }
    const Trial& best = *study.front().best();
    batch.metrics.push_back({.key = study.config().metric.name,
                             .value = *best.value,
                             .timestamp_ms = now_ms,
                             .step = static_cast<std::int64_t>(best.number)});
    batch.tags = {{"tune.best_trial", std::to_string(best.number)},
                  {"tune.best_value", number_text(*best.value)},
                  {"tune.best_run_id", best.run_id},
                  {"tune.best_params", to_text(study.config().space.to_json(best.point))}};
    return batch;
}

std::vector<Command> create_trial_commands(const Study& study, const Trial& trial) {
    const StudyIdentity& identity = study.identity();
    std::vector<Tag> tags = trial_state_tags(trial);
    tags.push_back({"mlflow.parentRunId", identity.run_id});
    tags.push_back({"tune.study", identity.name});
    tags.push_back({"tune.trial", std::to_string(trial.number)});
    if (!identity.user.empty()) tags.push_back({kUserTag, identity.user});
    std::vector<Command> commands;
    commands.push_back(
        tracker::CreateRun{.experiment_id = identity.experiment_id,
                           .run_id = trial.run_id,
                           .run_name = identity.name + "-" + std::to_string(trial.number),
                           .user_id = identity.user,
                           .start_time_ms = trial.start_ms != 0 ? trial.start_ms : trial.created_ms,
                           .tags = std::move(tags),
                           .status = run_status(trial.state)});
    add_params(commands, study, trial);
    const bool runs_first = trial.state == TrialState::kRunning && trial.attempt == 1;
    if (!is_ended(trial.state) && !runs_first) commands.push_back(mark_command(study, trial));
    // It never ran, or its creation was refused before and it has ended meanwhile.
    if (is_ended(trial.state)) {
        commands.push_back(tracker::UpdateRun{.run_id = trial.run_id,
                                              .status = run_status(trial.state),
                                              .end_time_ms = trial.end_ms});
        if (trial.state == TrialState::kComplete && trial.value) {
            tracker::LogBatch batch{.run_id = trial.run_id};
            for (const char* key : {kValueMetric, study.config().metric.name.c_str()})
                if (trial.reused_from || key == kValueMetric)
                    batch.metrics.push_back({.key = key,
                                             .value = *trial.value,
                                             .timestamp_ms = trial.end_ms,
                                             .step = 0});
            commands.push_back(std::move(batch));
        }
        commands.push_back(tracker::CloseParams{trial.run_id});
    }
    commands.push_back(trial_document_command(study, trial));
    return commands;
}

std::vector<Command> update_trial_commands(const Study& study, const Trial& trial,
                                           const FinishRequest* finish) {
    tracker::UpdateRun update{.run_id = trial.run_id, .status = run_status(trial.state)};
    if (trial.start_ms != 0) update.start_time_ms = trial.start_ms;
    if (is_ended(trial.state)) update.end_time_ms = trial.end_ms;
    tracker::LogBatch batch{.run_id = trial.run_id};
    batch.tags = trial_state_tags(trial);
    if (finish != nullptr) add_finish_tags(batch.tags, *finish);
    if (trial.state == TrialState::kComplete && trial.value)
        batch.metrics.push_back(
            {.key = kValueMetric, .value = *trial.value, .timestamp_ms = trial.end_ms, .step = 0});
    for (std::size_t i = 0; i < trial.more_values.size(); ++i)
        batch.metrics.push_back({.key = kValueMetric + ("_" + std::to_string(i + 2)),
                                 .value = trial.more_values[i],
                                 .timestamp_ms = trial.end_ms,
                                 .step = 0});
    if (trial.state == TrialState::kComplete && !study.config().constraints.empty())
        batch.metrics.push_back({.key = kViolationMetric,
                                 .value = violation_of(trial, study.config()),
                                 .timestamp_ms = trial.end_ms,
                                 .step = 0});
    std::vector<Command> commands = {std::move(update), std::move(batch)};
    if (trial.state == TrialState::kRunning && trial.attempt > 1)
        add_params(commands, study, trial);
    if (is_ended(trial.state)) commands.push_back(tracker::CloseParams{trial.run_id});
    commands.push_back(mark_command(study, trial));
    commands.push_back(trial_document_command(study, trial));
    return commands;
}

Command trial_document_command(const Study& study, const Trial& trial) {
    return tracker::PutDocument{kTrialCollection, trial_key(study.identity(), trial.number),
                                trial_to_document(trial)};
}

Result<std::unique_ptr<Study>> study_from_document(std::string_view json_text) {
    TUNE_TRY(document, parse_json(json_text));
    try {
        return read_study(document);
    } catch (const std::exception& error) {
        return Error{Code::kDataLoss,
                     "the document of a study cannot be read: " + std::string(error.what())};
    }
}

tracker::RunStatus run_status(TrialState state) {
    switch (state) {
        case TrialState::kQueued: return tracker::RunStatus::kScheduled;
        case TrialState::kRunning: return tracker::RunStatus::kRunning;
        case TrialState::kComplete: return tracker::RunStatus::kFinished;
        case TrialState::kPruned:
        case TrialState::kCancelled: return tracker::RunStatus::kKilled;
        case TrialState::kFailed: return tracker::RunStatus::kFailed;
    }
    return tracker::RunStatus::kFailed;
}

}  // namespace tune::tuner
