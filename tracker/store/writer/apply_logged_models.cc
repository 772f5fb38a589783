// Models that are deleted can still be written to, as in MLflow: only reads hide them. What a
// command returns is read back within the same transaction, so the response is what the next read
// gives.

#include <cmath>

#include "base/id.h"
#include "base/text/python_text.h"
#include "tracker/store/commands/validation.h"
#include "tracker/store/reads/read_logged_models.h"
#include "tracker/store/writer/apply.h"
#include "tracker/store/writer/run_name.h"

namespace tune::tracker {
namespace {

constexpr std::size_t kModelIdBytes = 16;

struct ModelRow {
    std::int64_t model_row = 0;
    ExperimentId experiment_id = 0;
};

/// Deleted models too, as in MLflow: only reads hide them.
Result<ModelRow> find_model(WriteContext& context, std::string_view model_id) {
    TUNE_TRY(select, context.connection.prepare("SELECT model_row, experiment_id FROM "
                                                "logged_models WHERE model_id = ?"));
    TUNE_TRY(has_row, select.with(model_id).step());
    if (!has_row) return no_logged_model(model_id);
    return ModelRow{select.integer(0), select.integer(1)};
}

Result<void> put_params(WriteContext& context, std::int64_t model_row,
                        const std::vector<Param>& params) {
    for (const Param& param : params) {
        TUNE_TRY(put, context.connection.prepare("INSERT INTO logged_model_params VALUES (?, ?, ?) "
                                                 "ON CONFLICT DO UPDATE SET "
                                                 "value = excluded.value"));
        TUNE_TRY_VOID(put.with(model_row, param.key, param.value).run());
    }
    return {};
}

Result<void> put_tags(WriteContext& context, std::int64_t model_row, const std::vector<Tag>& tags) {
    for (const Tag& tag : tags) {
        TUNE_TRY(put, context.connection.prepare("INSERT INTO logged_model_tags VALUES (?, ?, ?) "
                                                 "ON CONFLICT DO UPDATE SET "
                                                 "value = excluded.value"));
        TUNE_TRY_VOID(put.with(model_row, tag.key, tag.value).run());
    }
    return {};
}

Result<void> insert_model(WriteContext& context, const LoggedModel& model) {
    TUNE_TRY(insert, context.connection.prepare(
                         "INSERT INTO logged_models (model_id, experiment_id, name, artifact_uri, "
                         "creation_time_ms, last_updated_time_ms, status, status_message, "
                         "model_type, source_run_id, life) VALUES (?, ?, ?, ?, ?, ?, ?, '', ?, ?, "
                         "0)"));
    insert.with(model.model_id, model.experiment_id, model.name, model.artifact_uri,
                model.creation_time_ms, model.last_updated_time_ms,
                static_cast<std::int64_t>(model.status), model.model_type, model.source_run_id);
    return insert.run();
}

Result<Outcome> read_back(WriteContext& context, const ModelRow& row) {
    TUNE_TRY(model, load_logged_model(context.connection, row.model_row));
    context.events.push_back(LoggedModelChanged{model.model_id, row.experiment_id});
    return Outcome(std::move(model));
}

void announce(WriteContext& context, const std::string& model_id, const ModelRow& row) {
    context.events.push_back(LoggedModelChanged{model_id, row.experiment_id});
}

}  // namespace

Result<void> check_models_exist(WriteContext& context, const std::vector<Metric>& metrics) {
    std::string_view checked;
    for (const Metric& metric : metrics) {
        if (metric.model_id.empty() || metric.model_id == checked) continue;
        TUNE_TRY_VOID(find_model(context, metric.model_id));
        checked = metric.model_id;
    }
    return {};
}

Result<void> log_model_metrics(WriteContext& context, std::string_view run_id,
                               const std::vector<Metric>& metrics) {
    for (const Metric& metric : metrics) {
        if (metric.model_id.empty()) continue;
        TUNE_TRY(row, find_model(context, metric.model_id));
        TUNE_TRY(put, context.connection.prepare("INSERT INTO logged_model_metrics "
                                                 "VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
                                                 "ON CONFLICT DO NOTHING"));
        put.with(row.model_row, metric.key, metric.timestamp_ms, metric.step, run_id, metric.value,
                 metric.dataset_name, metric.dataset_digest);
        TUNE_TRY_VOID(put.run());
    }
    return {};
}

Result<Outcome> apply(WriteContext& context, CreateLoggedModel& command) {
    TUNE_TRY_VOID(validate_logged_model_name(command.name));
    TUNE_TRY(experiment, require_active_experiment(context, command.experiment_id));
    LoggedModel model;
    model.model_id = command.model_id.empty() ? "m-" + random_hex(kModelIdBytes) : command.model_id;
    if (!command.model_id.empty()) {
        TUNE_TRY_VOID(validate_run_id(model.model_id));
        if (find_model(context, model.model_id))
            return Error{Code::kResourceAlreadyExists,
                         "Logged model with ID '" + model.model_id + "' already exists."};
    }
    model.experiment_id = command.experiment_id;
    model.name = command.name.empty() ? generate_name(context.name_state) : command.name;
    model.artifact_uri =
        join_uri(experiment.artifact_location, "models/" + model.model_id + "/artifacts");
    model.creation_time_ms = context.clock.now_ms();
    model.last_updated_time_ms = model.creation_time_ms;
    model.model_type = command.model_type;
    model.source_run_id = command.source_run_id;
    TUNE_TRY_VOID(insert_model(context, model));
    const ModelRow row{context.connection.last_insert_row(), command.experiment_id};
    TUNE_TRY_VOID(put_params(context, row.model_row, command.params));
    TUNE_TRY_VOID(put_tags(context, row.model_row, command.tags));
    return read_back(context, row);
}

Result<Outcome> apply(WriteContext& context, FinalizeLoggedModel& command) {
    TUNE_TRY(row, find_model(context, command.model_id));
    TUNE_TRY(update, context.connection.prepare("UPDATE logged_models SET status = ?2, "
                                                "last_updated_time_ms = ?3 WHERE model_row = ?1"));
    update.with(row.model_row, static_cast<std::int64_t>(command.status), context.clock.now_ms());
    TUNE_TRY_VOID(update.run());
    return read_back(context, row);
}

Result<Outcome> apply(WriteContext& context, SetLoggedModelTags& command) {
    TUNE_TRY(row, find_model(context, command.model_id));
    TUNE_TRY_VOID(put_tags(context, row.model_row, command.tags));
    announce(context, command.model_id, row);
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, DeleteLoggedModelTag& command) {
    TUNE_TRY(row, find_model(context, command.model_id));
    TUNE_TRY(erase, context.connection.prepare("DELETE FROM logged_model_tags WHERE model_row = ? "
                                               "AND key = ?"));
    TUNE_TRY_VOID(erase.with(row.model_row, command.key).run());
    if (context.connection.changed_rows() == 0)
        return Error{Code::kResourceDoesNotExist, "No tag with key " + python_repr(command.key) +
                                                      " found for model with ID " +
                                                      python_repr(command.model_id) + "."};
    announce(context, command.model_id, row);
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, LogLoggedModelParams& command) {
    TUNE_TRY(row, find_model(context, command.model_id));
    TUNE_TRY_VOID(put_params(context, row.model_row, command.params));
    announce(context, command.model_id, row);
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, DeleteLoggedModel& command) {
    TUNE_TRY(row, find_model(context, command.model_id));
    TUNE_TRY(update, context.connection.prepare("UPDATE logged_models SET life = 1, "
                                                "last_updated_time_ms = ?2 WHERE model_row = ?1"));
    TUNE_TRY_VOID(update.with(row.model_row, context.clock.now_ms()).run());
    announce(context, command.model_id, row);
    return Outcome{};
}

}  // namespace tune::tracker
