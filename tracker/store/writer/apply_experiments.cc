// Deleting or restoring an experiment moves all its runs with it, as in MLflow, in one UPDATE; a
// run that was deleted before keeps its own time of deletion. So cached runs are forgotten, and one
// run of each chunk is noted as changed: the metric columns know where every run is, and a chunk is
// read anew as a whole.

#include "tracker/store/commands/validation.h"
#include "tracker/store/metrics/metric_columns.h"
#include "tracker/store/permissions/apply_permissions.h"
#include "tracker/store/reads/read_experiments.h"
#include "tracker/store/writer/apply.h"

namespace tune::tracker {
namespace {

/// Names are unique among active experiments: a deleted one does not keep its name from others.
Result<void> check_name_free(WriteContext& context, const std::string& name) {
    TUNE_TRY(other, find_experiment_by_name(context.connection, name));
    if (!other || other->lifecycle_stage == LifecycleStage::kDeleted) return {};
    return Error{Code::kResourceAlreadyExists, "Experiment(name=" + name + ") already exists."};
}

/// Errors: kResourceAlreadyExists when another one uses the name by now.
Result<void> check_restorable(WriteContext& context, const Experiment& experiment) {
    TUNE_TRY(other, find_experiment_by_name(context.connection, experiment.name));
    if (!other || other->lifecycle_stage == LifecycleStage::kDeleted) return {};
    return Error{Code::kResourceAlreadyExists,
                 "Cannot restore experiment " + std::to_string(experiment.experiment_id) +
                     ": its name '" + experiment.name + "' is used by experiment " +
                     std::to_string(other->experiment_id) +
                     " by now. Rename or delete that one first."};
}

Result<void> check_tags(const std::vector<Tag>& tags) {
    std::size_t views = 0;
    for (const Tag& tag : tags) {
        TUNE_TRY_VOID(validate_experiment_tag(tag));
        views += is_custom_view_tag(tag.key) ? 1 : 0;
    }
    if (views > kCustomViewsMax) return too_many_custom_views({});
    return {};
}

Result<void> put_tag(WriteContext& context, ExperimentId experiment_id, const Tag& tag) {
    TUNE_TRY(put, context.connection.prepare(
                      "INSERT INTO experiment_tags (experiment_id, key, value) VALUES (?, ?, ?) "
                      "ON CONFLICT DO UPDATE SET value = excluded.value"));
    return put.with(experiment_id, tag.key, tag.value).run();
}

/// The experiment as it is now, as an event.
Result<void> announce(WriteContext& context, ExperimentId experiment_id) {
    TUNE_TRY(experiment, find_experiment(context.connection, experiment_id));
    if (experiment) context.events.push_back(ExperimentChanged{std::move(*experiment)});
    return {};
}

/// For columns in memory: one run of each chunk with runs of the experiment.
Result<void> note_changed_runs(WriteContext& context, ExperimentId experiment_id) {
    TUNE_TRY(select, context.connection.prepare("SELECT DISTINCT run_row / ?2 * ?2 FROM runs "
                                                "WHERE experiment_id = ?1"));
    select.with(experiment_id, kChunkRuns);
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return {};
        context.metrics.note_changed_run(select.integer(0));
    }
}

/// The experiment in this state. Errors: kResourceDoesNotExist.
Result<Experiment> require_in_stage(WriteContext& context, ExperimentId experiment_id,
                                    LifecycleStage stage) {
    TUNE_TRY(experiment, find_experiment(context.connection, experiment_id));
    if (!experiment || experiment->lifecycle_stage != stage) return no_experiment(experiment_id);
    return std::move(*experiment);
}

Result<Outcome> move_to_stage(WriteContext& context, ExperimentId experiment_id,
                              LifecycleStage stage) {
    const bool is_deleted = stage == LifecycleStage::kDeleted;
    TUNE_TRY(experiment,
             require_in_stage(context, experiment_id,
                              is_deleted ? LifecycleStage::kActive : LifecycleStage::kDeleted));
    if (!is_deleted) TUNE_TRY_VOID(check_restorable(context, experiment));
    const std::int64_t now_ms = context.clock.now_ms();
    const auto life = static_cast<std::int64_t>(stage);
    TUNE_TRY(update, context.connection.prepare("UPDATE experiments SET life = ?2, "
                                                "last_update_time_ms = ?3 "
                                                "WHERE experiment_id = ?1"));
    TUNE_TRY_VOID(update.with(experiment_id, life, now_ms).run());
    TUNE_TRY(cascade, context.connection.prepare(
                          "UPDATE runs SET life = ?2, deleted_time_ms = "
                          "CASE ?2 WHEN 0 THEN NULL ELSE coalesce(deleted_time_ms, ?3) END "
                          "WHERE experiment_id = ?1"));
    TUNE_TRY_VOID(cascade.with(experiment_id, life, now_ms).run());
    context.runs.forget();
    TUNE_TRY_VOID(note_changed_runs(context, experiment_id));
    TUNE_TRY_VOID(announce(context, experiment_id));
    return Outcome{};
}

}  // namespace

Result<Experiment> require_active_experiment(WriteContext& context, ExperimentId experiment_id) {
    TUNE_TRY(experiment, find_experiment(context.connection, experiment_id));
    if (!experiment) return no_experiment(experiment_id);
    if (experiment->lifecycle_stage != LifecycleStage::kActive)
        return Error{Code::kInvalidParameterValue,
                     "The experiment " + std::to_string(experiment_id) +
                         " must be in the 'active' state. Current state is deleted."};
    return std::move(*experiment);
}

Result<Outcome> apply(WriteContext& context, CreateExperiment& command) {
    TUNE_TRY_VOID(validate_artifact_location(command.artifact_location));
    TUNE_TRY_VOID(validate_experiment_name(command.name));
    TUNE_TRY_VOID(check_tags(command.tags));
    TUNE_TRY_VOID(check_name_free(context, command.name));
    command.artifact_location = absolute_location(std::move(command.artifact_location));
    const std::int64_t now_ms = context.clock.now_ms();
    TUNE_TRY(insert, context.connection.prepare(
                         "INSERT INTO experiments (name, artifact_location, life, "
                         "creation_time_ms, last_update_time_ms) VALUES (?1, ?2, 0, ?3, ?3)"));
    TUNE_TRY_VOID(insert.with(command.name, command.artifact_location, now_ms).run());
    const ExperimentId id = context.connection.last_insert_row();
    if (command.artifact_location.empty()) {
        TUNE_TRY(update, context.connection.prepare("UPDATE experiments SET artifact_location = ?2 "
                                                    "WHERE experiment_id = ?1"));
        const std::string location = join_uri(context.options.artifact_root, std::to_string(id));
        TUNE_TRY_VOID(update.with(id, location).run());
    }
    for (const Tag& tag : command.tags) TUNE_TRY_VOID(put_tag(context, id, tag));
    TUNE_TRY_VOID(
        grant_owner(context, command.owner_id, ResourceType::kExperiment, std::to_string(id)));
    TUNE_TRY_VOID(announce(context, id));
    return Outcome(id);
}

Result<Outcome> apply(WriteContext& context, RenameExperiment& command) {
    TUNE_TRY_VOID(validate_experiment_name(command.new_name));
    TUNE_TRY(experiment, find_experiment(context.connection, command.experiment_id));
    if (!experiment) return no_experiment(command.experiment_id);
    if (experiment->lifecycle_stage != LifecycleStage::kActive)
        return Error{Code::kInvalidParameterValue, "Cannot rename a non-active experiment."};
    if (experiment->name != command.new_name)
        TUNE_TRY_VOID(check_name_free(context, command.new_name));
    TUNE_TRY(update, context.connection.prepare("UPDATE experiments SET name = ?2, "
                                                "last_update_time_ms = ?3 "
                                                "WHERE experiment_id = ?1"));
    TUNE_TRY_VOID(
        update.with(command.experiment_id, command.new_name, context.clock.now_ms()).run());
    TUNE_TRY_VOID(announce(context, command.experiment_id));
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, DeleteExperiment& command) {
    return move_to_stage(context, command.experiment_id, LifecycleStage::kDeleted);
}

Result<Outcome> apply(WriteContext& context, RestoreExperiment& command) {
    return move_to_stage(context, command.experiment_id, LifecycleStage::kActive);
}

Result<Outcome> apply(WriteContext& context, SetExperimentTag& command) {
    TUNE_TRY_VOID(validate_experiment_tag(command.tag));
    TUNE_TRY(experiment, require_active_experiment(context, command.experiment_id));
    std::size_t views = 0;
    bool is_new = true;
    for (const Tag& tag : experiment.tags) {
        views += is_custom_view_tag(tag.key) ? 1 : 0;
        is_new = is_new && tag.key != command.tag.key;
    }
    if (is_new && is_custom_view_tag(command.tag.key) && views >= kCustomViewsMax)
        return too_many_custom_views(std::to_string(command.experiment_id));
    TUNE_TRY_VOID(put_tag(context, command.experiment_id, command.tag));
    TUNE_TRY_VOID(announce(context, command.experiment_id));
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, DeleteExperimentTag& command) {
    TUNE_TRY_VOID(require_active_experiment(context, command.experiment_id));
    TUNE_TRY(erase, context.connection.prepare("DELETE FROM experiment_tags "
                                               "WHERE experiment_id = ? AND key = ?"));
    TUNE_TRY_VOID(erase.with(command.experiment_id, command.key).run());
    if (context.connection.changed_rows() == 0)
        return Error{Code::kResourceDoesNotExist, "No tag with name: " + command.key +
                                                      " in experiment with id " +
                                                      std::to_string(command.experiment_id)};
    TUNE_TRY_VOID(announce(context, command.experiment_id));
    return Outcome{};
}

}  // namespace tune::tracker
