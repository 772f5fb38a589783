// Links are sets: a dataset or model that is linked already changes nothing, so that a retried
// request is harmless, and an event is raised only if something changed. Documents of other
// libraries are plain puts and deletes of a key.

#include "tracker/store/commands/validation.h"
#include "tracker/store/writer/apply.h"

namespace tune::tracker {
namespace {

/// The row of the dataset, made if the experiment has none of this name and digest.
Result<std::int64_t> dataset_row(WriteContext& context, ExperimentId experiment_id,
                                 const Dataset& dataset) {
    TUNE_TRY(select, context.connection.prepare("SELECT dataset_row FROM datasets WHERE "
                                                "experiment_id = ? AND name = ? AND digest = ?"));
    TUNE_TRY(has_row, select.with(experiment_id, dataset.name, dataset.digest).step());
    if (has_row) return select.integer(0);
    TUNE_TRY(insert, context.connection.prepare(
                         "INSERT INTO datasets (experiment_id, name, digest, source_type, source, "
                         "schema, profile) VALUES (?, ?, ?, ?, ?, ?, ?)"));
    insert.with(experiment_id, dataset.name, dataset.digest, dataset.source_type, dataset.source);
    if (dataset.schema) insert.bind(6, *dataset.schema);
    if (dataset.profile) insert.bind(7, *dataset.profile);
    TUNE_TRY_VOID(insert.run());
    return context.connection.last_insert_row();
}

}  // namespace

Result<bool> link_dataset(WriteContext& context, const RunRow& run, const DatasetInput& input) {
    TUNE_TRY(dataset, dataset_row(context, run.experiment_id, input.dataset));
    TUNE_TRY(insert, context.connection.prepare("INSERT INTO dataset_inputs (run_row, dataset_row) "
                                                "VALUES (?, ?) ON CONFLICT DO NOTHING"));
    TUNE_TRY_VOID(insert.with(run.run_row, dataset).run());
    if (context.connection.changed_rows() == 0) return false;
    const std::int64_t input_row = context.connection.last_insert_row();
    for (const Tag& tag : input.tags) {
        TUNE_TRY(put, context.connection.prepare("INSERT INTO input_tags VALUES (?, ?, ?) "
                                                 "ON CONFLICT DO UPDATE SET "
                                                 "value = excluded.value"));
        TUNE_TRY_VOID(put.with(input_row, tag.key, tag.value).run());
    }
    return true;
}

Result<bool> link_model(WriteContext& context, const RunRow& run, bool is_output,
                        const ModelOutput& model) {
    TUNE_TRY(insert, context.connection.prepare(
                         "INSERT INTO run_models SELECT ?1, ?2, (SELECT coalesce(max(position), 0) "
                         "+ 1 FROM run_models WHERE run_row = ?1 AND is_output = ?2), ?3, ?4 "
                         "WHERE NOT EXISTS (SELECT 1 FROM run_models WHERE run_row = ?1 AND "
                         "is_output = ?2 AND model_id = ?3)"));
    insert.with(run.run_row, std::int64_t{is_output}, model.model_id, model.step);
    TUNE_TRY_VOID(insert.run());
    return context.connection.changed_rows() > 0;
}

namespace {

void announce(WriteContext& context, const std::string& run_id, const RunRow& run, bool changed) {
    if (changed) context.events.push_back(RunLinksChanged{run_id, run.experiment_id});
}

}  // namespace

Result<Outcome> apply(WriteContext& context, LogInputs& command) {
    TUNE_TRY_VOID(validate_run_id(command.run_id));
    for (const DatasetInput& input : command.datasets) TUNE_TRY_VOID(validate_dataset_input(input));
    TUNE_TRY(run, context.runs.find_active(command.run_id));
    bool changed = false;
    for (const DatasetInput& input : command.datasets) {
        TUNE_TRY(is_new, link_dataset(context, run, input));
        changed = changed || is_new;
    }
    for (const ModelInput& model : command.models) {
        TUNE_TRY(is_new, link_model(context, run, false, {model.model_id, 0}));
        changed = changed || is_new;
    }
    announce(context, command.run_id, run, changed);
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, LogOutputs& command) {
    TUNE_TRY(run, context.runs.find_active(command.run_id));
    bool changed = false;
    for (const ModelOutput& model : command.models) {
        TUNE_TRY(is_new, link_model(context, run, true, model));
        changed = changed || is_new;
    }
    announce(context, command.run_id, run, changed);
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, PutDocument& command) {
    TUNE_TRY(put, context.connection.prepare("INSERT INTO documents (collection, key, json_text) "
                                             "VALUES (?, ?, ?) ON CONFLICT (collection, key) "
                                             "DO UPDATE SET json_text = excluded.json_text"));
    TUNE_TRY_VOID(put.with(command.collection, command.key, command.json_text).run());
    context.events.push_back(
        DocumentPut{Document{command.collection, command.key, command.json_text}});
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, DeleteDocument& command) {
    TUNE_TRY(erase, context.connection.prepare("DELETE FROM documents WHERE collection = ? "
                                               "AND key = ?"));
    TUNE_TRY_VOID(erase.with(command.collection, command.key).run());
    if (context.connection.changed_rows() > 0)
        context.events.push_back(DocumentDeleted{command.collection, command.key});
    return Outcome{};
}

}  // namespace tune::tracker
