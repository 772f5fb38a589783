// Rows of other stores (import_commands.h).
//
// These commands write what an import has read as it is: ids, times and life cycle included, which
// MLflow's own commands would choose anew. A name or id that is taken is refused and never
// overwritten, unless the command says that it updates what an earlier import brought. A command
// is applied whole or not at all, so an interrupted import can be repeated.

#include "tracker/store/commands/validation.h"
#include "tracker/store/reads/read_experiments.h"
#include "tracker/store/reads/read_logged_models.h"
#include "tracker/store/reads/runs/read_runs.h"
#include "tracker/store/writer/apply.h"

namespace tune::tracker {
namespace {

Error taken(const std::string& what) {
    return {Code::kResourceAlreadyExists, what + " already exists."};
}

Result<void> erase(WriteContext& context, const char* sql, std::int64_t row) {
    TUNE_TRY(statement, context.connection.prepare(sql));
    return statement.with(row).run();
}

// --- experiments ---------------------------------------------------------------------------------

Result<void> insert_experiment(WriteContext& context, const Experiment& experiment) {
    const ExperimentId id = experiment.experiment_id;
    TUNE_TRY(other, find_experiment(context.connection, id));
    if (other) return taken("Experiment " + std::to_string(id));
    TUNE_TRY(namesake, find_experiment_by_name(context.connection, experiment.name));
    if (namesake) return taken("Experiment(name=" + experiment.name + ")");
    TUNE_TRY(insert, context.connection.prepare(
                         "INSERT INTO experiments (experiment_id, name, artifact_location, life, "
                         "creation_time_ms, last_update_time_ms) VALUES (?, ?, ?, ?, ?, ?)"));
    insert.with(id, experiment.name, experiment.artifact_location,
                static_cast<std::int64_t>(experiment.lifecycle_stage), experiment.creation_time_ms,
                experiment.last_update_time_ms);
    TUNE_TRY_VOID(insert.run());
    if (!experiment.artifact_location.empty()) return {};
    TUNE_TRY(update, context.connection.prepare("UPDATE experiments SET artifact_location = ?2 "
                                                "WHERE experiment_id = ?1"));
    const std::string location = join_uri(context.options.artifact_root, std::to_string(id));
    return update.with(id, location).run();
}

Result<void> update_experiment(WriteContext& context, const Experiment& experiment) {
    TUNE_TRY(old, find_experiment(context.connection, experiment.experiment_id));
    if (!old) return no_experiment(experiment.experiment_id);
    TUNE_TRY(update, context.connection.prepare(
                         "UPDATE experiments SET name = ?2, life = ?3, creation_time_ms = ?4, "
                         "last_update_time_ms = ?5 WHERE experiment_id = ?1"));
    update.with(experiment.experiment_id, experiment.name,
                static_cast<std::int64_t>(experiment.lifecycle_stage), experiment.creation_time_ms,
                experiment.last_update_time_ms);
    return update.run();
}

Result<Outcome> apply(WriteContext& context, ImportExperiment& command) {
    const ExperimentId id = command.experiment.experiment_id;
    TUNE_TRY_VOID(command.is_update ? update_experiment(context, command.experiment)
                                    : insert_experiment(context, command.experiment));
    for (const Tag& tag : command.experiment.tags) {
        TUNE_TRY(put, context.connection.prepare("INSERT INTO experiment_tags VALUES (?, ?, ?) "
                                                 "ON CONFLICT DO UPDATE SET "
                                                 "value = excluded.value"));
        TUNE_TRY_VOID(put.with(id, tag.key, tag.value).run());
    }
    TUNE_TRY(experiment, find_experiment(context.connection, id));
    if (experiment) context.events.push_back(ExperimentChanged{std::move(*experiment)});
    return Outcome(id);
}

// --- runs ----------------------------------------------------------------------------------------

constexpr const char* kInsertRun =
    "INSERT INTO runs (run_id, experiment_id, name, user_id, status, start_time_ms, end_time_ms, "
    "artifact_uri, life) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 1)";
constexpr const char* kReplaceRun =
    "UPDATE runs SET experiment_id = ?2, name = ?3, user_id = ?4, status = ?5, start_time_ms = ?6, "
    "end_time_ms = ?7, artifact_uri = ?8, life = 1, deleted_time_ms = NULL WHERE run_id = ?1";

Result<void> write_run_info(WriteContext& context, const RunInfo& info, const char* sql) {
    TUNE_TRY(write, context.connection.prepare(sql));
    write.with(info.run_id, info.experiment_id, info.run_name, info.user_id,
               static_cast<std::int64_t>(info.status), info.start_time_ms);
    if (info.end_time_ms) write.bind(7, *info.end_time_ms);
    write.bind(8, info.artifact_uri);
    return write.run();
}

Result<void> erase_run_rows(WriteContext& context, std::int64_t run_row) {
    TUNE_TRY_VOID(erase(context, "DELETE FROM params WHERE run_row = ?", run_row));
    TUNE_TRY_VOID(erase(context, "DELETE FROM suggested_params WHERE run_row = ?", run_row));
    TUNE_TRY_VOID(erase(context, "DELETE FROM tags WHERE run_row = ?", run_row));
    TUNE_TRY_VOID(erase(context,
                        "DELETE FROM input_tags WHERE input_row IN (SELECT input_row FROM "
                        "dataset_inputs WHERE run_row = ?)",
                        run_row));
    TUNE_TRY_VOID(erase(context, "DELETE FROM dataset_inputs WHERE run_row = ?", run_row));
    return erase(context, "DELETE FROM run_models WHERE run_row = ?", run_row);
}

template <class Item>
Result<void> insert_pairs(WriteContext& context, std::int64_t run_row, const char* sql,
                          const std::vector<Item>& items) {
    for (const Item& item : items) {
        TUNE_TRY(key_id, context.keys.id_of(item.key));
        TUNE_TRY(insert, context.connection.prepare(sql));
        TUNE_TRY_VOID(insert.with(run_row, key_id, item.value).run());
    }
    return {};
}

Result<Outcome> apply(WriteContext& context, ImportRun& command) {
    const RunInfo& info = command.run.info;
    TUNE_TRY_VOID(validate_run_id(info.run_id));
    TUNE_TRY(experiment, find_experiment(context.connection, info.experiment_id));
    if (!experiment) return no_experiment(info.experiment_id);
    TUNE_TRY(known, find_run_row(context.connection, info.run_id));
    if (known != 0 && !command.is_update) return taken("Run with id=" + info.run_id);
    if (known != 0) TUNE_TRY_VOID(erase_run_rows(context, known));
    TUNE_TRY_VOID(write_run_info(context, info, known == 0 ? kInsertRun : kReplaceRun));
    context.runs.forget(info.run_id);
    TUNE_TRY(run, context.runs.find(info.run_id));
    context.metrics.note_new_run(run.run_row);
    TUNE_TRY_VOID(insert_pairs(context, run.run_row,
                               "INSERT OR REPLACE INTO params VALUES "
                               "(?, ?, ?)",
                               command.run.params));
    TUNE_TRY_VOID(insert_pairs(context, run.run_row,
                               "INSERT OR REPLACE INTO tags VALUES "
                               "(?, ?, ?)",
                               command.run.tags));
    for (const DatasetInput& input : command.run.dataset_inputs)
        TUNE_TRY_VOID(link_dataset(context, run, input));
    for (const ModelInput& model : command.run.model_inputs)
        TUNE_TRY_VOID(link_model(context, run, false, {model.model_id, 0}));
    for (const ModelOutput& model : command.run.model_outputs)
        TUNE_TRY_VOID(link_model(context, run, true, model));
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, ImportMetrics& command) {
    TUNE_TRY(run, context.runs.find(command.run_id));
    for (const ImportedSeries& series : command.series) {
        TUNE_TRY(key_id, context.keys.id_of(series.key));
        for (Point point : series.points) {
            point.value = clamp_metric_value(point.value);
            TUNE_TRY_VOID(context.metrics.add({run.run_row, key_id}, point));
        }
    }
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, FinishImportedRun& command) {
    TUNE_TRY(run, context.runs.find(command.run_id));
    TUNE_TRY(update, context.connection.prepare("UPDATE runs SET life = ?2, deleted_time_ms = ?3 "
                                                "WHERE run_row = ?1"));
    update.with(run.run_row, static_cast<std::int64_t>(command.life));
    if (command.deleted_time_ms) update.bind(3, *command.deleted_time_ms);
    TUNE_TRY_VOID(update.run());
    context.runs.forget(command.run_id);
    context.metrics.note_changed_run(run.run_row);
    TUNE_TRY(info, find_run_info(context.connection, command.run_id));
    if (info) context.events.push_back(RunUpdated{std::move(*info)});
    return Outcome{};
}

// --- logged models -------------------------------------------------------------------------------

constexpr const char* kInsertModel =
    "INSERT INTO logged_models (model_id, experiment_id, name, artifact_uri, creation_time_ms, "
    "last_updated_time_ms, status, status_message, model_type, source_run_id, life) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
constexpr const char* kReplaceModel =
    "UPDATE logged_models SET experiment_id = ?2, name = ?3, artifact_uri = ?4, "
    "creation_time_ms = ?5, last_updated_time_ms = ?6, status = ?7, status_message = ?8, "
    "model_type = ?9, source_run_id = ?10, life = ?11 WHERE model_id = ?1";

Result<std::int64_t> find_model_row(WriteContext& context, const std::string& model_id) {
    TUNE_TRY(select, context.connection.prepare("SELECT model_row FROM logged_models "
                                                "WHERE model_id = ?"));
    TUNE_TRY(has_row, select.with(model_id).step());
    return has_row ? select.integer(0) : std::int64_t{0};
}

template <class Item>
Result<void> insert_model_pairs(WriteContext& context, std::int64_t model_row, const char* sql,
                                const std::vector<Item>& items) {
    for (const Item& item : items) {
        TUNE_TRY(insert, context.connection.prepare(sql));
        TUNE_TRY_VOID(insert.with(model_row, item.key, item.value).run());
    }
    return {};
}

Result<void> write_model_rows(WriteContext& context, std::int64_t row, const LoggedModel& model) {
    for (const char* sql : {"DELETE FROM logged_model_params WHERE model_row = ?",
                            "DELETE FROM logged_model_tags WHERE model_row = ?",
                            "DELETE FROM logged_model_metrics WHERE model_row = ?"})
        TUNE_TRY_VOID(erase(context, sql, row));
    TUNE_TRY_VOID(insert_model_pairs(
        context, row, "INSERT OR REPLACE INTO logged_model_params VALUES (?, ?, ?)", model.params));
    TUNE_TRY_VOID(insert_model_pairs(
        context, row, "INSERT OR REPLACE INTO logged_model_tags VALUES (?, ?, ?)", model.tags));
    for (const Metric& metric : model.metrics) {
        TUNE_TRY(put, context.connection.prepare("INSERT OR REPLACE INTO logged_model_metrics "
                                                 "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"));
        put.with(row, metric.key, metric.timestamp_ms, metric.step, metric.run_id,
                 clamp_metric_value(metric.value), metric.dataset_name, metric.dataset_digest);
        TUNE_TRY_VOID(put.run());
    }
    return {};
}

Result<Outcome> apply(WriteContext& context, ImportLoggedModel& command) {
    const LoggedModel& model = command.model;
    TUNE_TRY_VOID(validate_run_id(model.model_id));
    TUNE_TRY(experiment, find_experiment(context.connection, model.experiment_id));
    if (!experiment) return no_experiment(model.experiment_id);
    TUNE_TRY(known, find_model_row(context, model.model_id));
    if (known != 0 && !command.is_update)
        return taken("Logged model with ID '" + model.model_id + "'");
    TUNE_TRY(write, context.connection.prepare(known == 0 ? kInsertModel : kReplaceModel));
    write.with(model.model_id, model.experiment_id, model.name, model.artifact_uri,
               model.creation_time_ms, model.last_updated_time_ms,
               static_cast<std::int64_t>(model.status), model.status_message, model.model_type,
               model.source_run_id, static_cast<std::int64_t>(command.life));
    TUNE_TRY_VOID(write.run());
    TUNE_TRY(row, find_model_row(context, model.model_id));
    TUNE_TRY_VOID(write_model_rows(context, row, model));
    context.events.push_back(LoggedModelChanged{model.model_id, model.experiment_id});
    return Outcome{};
}

}  // namespace

Result<Outcome> apply(WriteContext& context, ImportRows& command) {
    return std::visit([&](auto& rows) { return apply(context, rows); },
                      static_cast<ImportVariant&>(command));
}

}  // namespace tune::tracker
