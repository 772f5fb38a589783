// A run's name and its tag mlflow.runName are one value in two places; settle_name and settle_tags
// make them equal. A run whose place or start time changes, and a new one, is noted for the metric
// columns: its row may have belonged to a purged run.

#include "base/id.h"
#include "base/limits.h"
#include "base/text/utf8.h"
#include "tracker/store/commands/validation.h"
#include "tracker/store/reads/runs/read_runs.h"
#include "tracker/store/writer/apply.h"
#include "tracker/store/writer/run_name.h"

namespace tune::tracker {
namespace {

constexpr std::size_t kRunIdBytes = 16;

/// Run name and tag, one deciding the other. Errors: kInvalidParameterValue when they differ.
Result<std::string> settle_name(WriteContext& context, CreateRun& command) {
    std::string from_tag;
    for (const Tag& tag : command.tags)
        if (tag.key == kRunNameTag) from_tag = tag.value;
    if (!command.run_name.empty() && !from_tag.empty() && command.run_name != from_tag)
        return Error{Code::kInvalidParameterValue,
                     "Both 'run_name' argument and 'mlflow.runName' tag are specified, but with "
                     "different values (run_name='" +
                         command.run_name + "', mlflow.runName='" + from_tag + "')."};
    std::string name = command.run_name.empty() ? from_tag : command.run_name;
    if (name.empty()) name = generate_name(context.name_state);
    return name;
}

Result<void> check_new_run(WriteContext& context, const CreateRun& command) {
    if (command.run_id.empty()) return {};
    TUNE_TRY_VOID(validate_run_id(command.run_id));
    TUNE_TRY(other, find_run_info(context.connection, command.run_id));
    if (!other) return {};
    return Error{Code::kResourceAlreadyExists,
                 "Run with id=" + command.run_id + " already exists."};
}

/// MLflow takes any key here, also those that set-tag refuses; only lengths are kept in bounds.
Result<void> fit_tags(std::vector<Tag>& tags) {
    for (Tag& tag : tags) {
        if (count_characters(tag.key) > kKeyCharsMax) return too_long("key", kKeyCharsMax);
        cut_to_characters(tag.value, kRunTagValueCharsMax);
    }
    return {};
}

Result<std::int64_t> insert_run(WriteContext& context, const RunInfo& info) {
    TUNE_TRY(insert, context.connection.prepare(
                         "INSERT INTO runs (run_id, experiment_id, name, user_id, status, "
                         "start_time_ms, artifact_uri, life) VALUES (?, ?, ?, ?, ?, ?, ?, 0)"));
    insert.with(info.run_id, info.experiment_id, info.run_name, info.user_id,
                static_cast<std::int64_t>(info.status), info.start_time_ms, info.artifact_uri);
    TUNE_TRY_VOID(insert.run());
    context.metrics.note_new_run(context.connection.last_insert_row());
    return context.connection.last_insert_row();
}

/// The tags with the run's name among them, cut to length, one per key.
std::vector<Tag> settle_tags(std::vector<Tag> tags, const std::string& name) {
    tags.push_back({std::string(kRunNameTag), name});
    TextMap<std::size_t> places;
    std::vector<Tag> settled;
    for (Tag& tag : tags) {
        const auto [place, is_new] = places.try_emplace(tag.key, settled.size());
        if (is_new)
            settled.push_back(std::move(tag));
        else
            settled[place->second].value = std::move(tag.value);
    }
    return settled;
}

Result<void> announce(WriteContext& context, std::string_view run_id) {
    TUNE_TRY(info, find_run_info(context.connection, run_id));
    if (info) context.events.push_back(RunUpdated{std::move(*info)});
    return {};
}

Result<Outcome> move_to_stage(WriteContext& context, const std::string& run_id,
                              LifecycleStage stage) {
    TUNE_TRY(run, context.runs.find(run_id));
    if (run.life == stage) return Outcome{};
    TUNE_TRY(update,
             context.connection.prepare("UPDATE runs SET life = ?2, deleted_time_ms = "
                                        "CASE ?2 WHEN 0 THEN NULL ELSE ?3 END WHERE run_row = ?1"));
    TUNE_TRY_VOID(
        update.with(run.run_row, static_cast<std::int64_t>(stage), context.clock.now_ms()).run());
    context.runs.forget(run_id);
    context.metrics.note_changed_run(run.run_row);
    TUNE_TRY_VOID(announce(context, run_id));
    return Outcome{};
}

}  // namespace

Result<Outcome> apply(WriteContext& context, CreateRun& command) {
    TUNE_TRY(experiment, require_active_experiment(context, command.experiment_id));
    TUNE_TRY_VOID(check_new_run(context, command));
    TUNE_TRY(name, settle_name(context, command));
    TUNE_TRY_VOID(fit_tags(command.tags));
    Run run;
    run.info.run_id = command.run_id.empty() ? random_hex(kRunIdBytes) : command.run_id;
    run.info.experiment_id = command.experiment_id;
    run.info.run_name = name;
    run.info.user_id = command.user_id;
    run.info.status = command.status;
    run.info.start_time_ms = command.start_time_ms;
    run.info.artifact_uri = join_uri(experiment.artifact_location, run.info.run_id + "/artifacts");
    TUNE_TRY(run_row, insert_run(context, run.info));
    run.tags = settle_tags(command.tags, name);
    const RunRow row{run_row, command.experiment_id, LifecycleStage::kActive};
    for (const Tag& tag : run.tags) {
        TUNE_TRY(key_id, context.keys.id_of(tag.key));
        TUNE_TRY(insert, context.connection.prepare("INSERT INTO tags VALUES (?, ?, ?)"));
        TUNE_TRY_VOID(insert.with(row.run_row, key_id, tag.value).run());
    }
    sort_by_key(run.tags);
    context.events.push_back(RunCreated{run.info, run.tags});
    return Outcome(std::move(run));
}

Result<Outcome> apply(WriteContext& context, UpdateRun& command) {
    TUNE_TRY(run, context.runs.find_active(command.run_id));
    TUNE_TRY(found, find_run_info(context.connection, command.run_id));
    if (!found) return no_run(command.run_id);
    RunInfo info = std::move(*found);
    const RunStatus old_status = info.status;
    if (command.only_if_status.value_or(old_status) != old_status)
        return Error{Code::kInvalidState,
                     "The run " + command.run_id + " is " + std::string(status_name(old_status)) +
                         ", not " + std::string(status_name(*command.only_if_status)) + "."};
    if (command.status) info.status = *command.status;
    if (command.end_time_ms) info.end_time_ms = command.end_time_ms;
    if (command.start_time_ms) info.start_time_ms = *command.start_time_ms;
    // A column that is set is written to its index anew, whatever its value.
    TUNE_TRY(update, context.connection.prepare(
                         command.start_time_ms
                             ? "UPDATE runs SET status = ?2, end_time_ms = ?3, start_time_ms = ?4 "
                               "WHERE run_row = ?1"
                             : "UPDATE runs SET status = ?2, end_time_ms = ?3 WHERE run_row = ?1"));
    update.with(run.run_row, static_cast<std::int64_t>(info.status));
    if (info.end_time_ms) update.bind(3, *info.end_time_ms);
    if (command.start_time_ms) update.bind(4, *command.start_time_ms);
    TUNE_TRY_VOID(update.run());
    if (command.start_time_ms) context.metrics.note_changed_run(run.run_row);
    if (!command.run_name.empty()) {
        info.run_name = command.run_name;
        TUNE_TRY_VOID(
            put_tags(context, run, command.run_id, {{std::string(kRunNameTag), command.run_name}}));
    }
    context.events.push_back(RunUpdated{info, info.status != old_status});
    return Outcome(std::move(info));
}

Result<Outcome> apply(WriteContext& context, DeleteRun& command) {
    return move_to_stage(context, command.run_id, LifecycleStage::kDeleted);
}

Result<Outcome> apply(WriteContext& context, RestoreRun& command) {
    return move_to_stage(context, command.run_id, LifecycleStage::kActive);
}

}  // namespace tune::tracker
