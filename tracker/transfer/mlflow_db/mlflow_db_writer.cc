// Rows are written as MLflow's own code writes them, since MLflow checks nothing when it opens the
// file: NULL where it keeps NULL. Where MLflow draws random ids (datasets, edges) ours follow from
// the contents, so that two exports of one store are equal.

#include "tracker/transfer/mlflow_db/mlflow_db_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/crypto/digest.h"
#include "base/system/unique_fd.h"
#include "base/text/hex.h"

namespace tune::tracker {
namespace {

constexpr std::string_view kSchema =
#include "schema.inc"  // made by embed_schema.cmake from schema_dc11669786a5.sql
    ;
constexpr std::string_view kIndexes = "\n-- @indexes\n";
/// The primary key of metrics begins with the key, so runs scatter over its tree.
constexpr int kWriteCacheKib = 256 << 10;
constexpr std::size_t kUuidCharacters = 32;

const char* name_of(LifecycleStage stage) {
    return stage == LifecycleStage::kDeleted ? "deleted" : "active";
}

/// MLflow gives random ids to datasets and edges; ours are the same in every export.
std::string uuid_of(std::string_view kind, ExperimentId experiment, std::string_view a,
                    std::string_view b) {
    std::string text(kind);
    text += '\0' + std::to_string(experiment) + '\0';
    text.append(a).append(1, '\0').append(b);
    return hex_encode(sha256(text)).substr(0, kUuidCharacters);
}

/// A value that is bound as NULL when it is absent, or empty where MLflow keeps NULL.
struct OrNull {
    std::optional<sqlite::Value> value;
    OrNull(const std::optional<std::string>& text) {  // NOLINT: implicit by design
        if (text) value = *text;
    }
    OrNull(const std::optional<std::int64_t>& number) {  // NOLINT: implicit by design
        if (number) value = *number;
    }
    static OrNull if_empty(const std::string& text) {
        return text.empty() ? OrNull(std::optional<std::string>())
                            : OrNull(std::optional<std::string>(text));
    }
    static OrNull if_zero(std::int64_t number) {
        return number == 0 ? OrNull(std::optional<std::int64_t>())
                           : OrNull(std::optional<std::int64_t>(number));
    }
};

void put(sqlite::Statement& statement, int index, const OrNull& value) {
    if (value.value)
        statement.bind_value(index, *value.value);
    else
        statement.bind_null(index);
}
void put(sqlite::Statement& statement, int index, std::string_view value) {
    statement.bind(index, value);
}
void put(sqlite::Statement& statement, int index, std::int64_t value) {
    statement.bind(index, value);
}
void put(sqlite::Statement& statement, int index, double value) {
    statement.bind(index, value);
}

}  // namespace

Result<std::unique_ptr<MlflowDbWriter>> MlflowDbWriter::create(const std::filesystem::path& file) {
    sqlite::ConnectionOptions writing;
    writing.access = sqlite::Access::kWriteOnce;
    writing.cache_kib = kWriteCacheKib;
    TUNE_TRY(connection, sqlite::Connection::open(file.string(), writing));
    TUNE_TRY(transaction, sqlite::Transaction::begin_write(*connection));
    const std::size_t indexes = kSchema.find(kIndexes);
    TUNE_CHECK(indexes != std::string_view::npos, "the schema of MLflow has no '-- @indexes'");
    if (Result<void> made = connection->execute(std::string(kSchema.substr(0, indexes))); !made)
        return std::move(made).error();
    return std::unique_ptr<MlflowDbWriter>(
        new MlflowDbWriter(file, std::move(connection), std::move(transaction)));
}

template <class... Values>
Result<void> MlflowDbWriter::insert(const char* sql, const Values&... values) {
    TUNE_TRY(statement, connection_->prepare(sql));
    int index = 0;
    (put(statement, ++index, values), ...);
    return statement.run();
}

Result<void> MlflowDbWriter::add_experiment(const Experiment& experiment) {
    TUNE_TRY_VOID(
        insert("INSERT INTO experiments (experiment_id, name, artifact_location, "
               "lifecycle_stage, creation_time, last_update_time, workspace) "
               "VALUES (?, ?, ?, ?, ?, ?, 'default')",
               experiment.experiment_id, experiment.name, experiment.artifact_location,
               std::string_view(name_of(experiment.lifecycle_stage)), experiment.creation_time_ms,
               experiment.last_update_time_ms));
    for (const Tag& tag : experiment.tags)
        TUNE_TRY_VOID(
            insert("INSERT INTO experiment_tags (key, value, experiment_id) "
                   "VALUES (?, ?, ?)",
                   tag.key, tag.value, experiment.experiment_id));
    return {};
}

// --- runs ----------------------------------------------------------------------------------------

Result<void> MlflowDbWriter::add_run(const SourceRun& source) {
    const Run& run = source.run;
    const RunInfo& info = run.info;
    TUNE_TRY_VOID(insert(
        "INSERT INTO runs (run_uuid, name, source_type, source_name, entry_point_name, user_id, "
        "status, start_time, end_time, source_version, lifecycle_stage, artifact_uri, "
        "experiment_id, deleted_time) VALUES (?, ?, 'UNKNOWN', '', '', ?, ?, ?, ?, '', ?, ?, ?, ?)",
        info.run_id, info.run_name, info.user_id, status_name(info.status),
        OrNull::if_zero(info.start_time_ms), OrNull(info.end_time_ms),
        std::string_view(name_of(info.lifecycle_stage)), info.artifact_uri, info.experiment_id,
        OrNull(source.deleted_time_ms)));
    for (const Param& param : run.params)
        TUNE_TRY_VOID(insert("INSERT INTO params (key, value, run_uuid) VALUES (?, ?, ?)",
                             param.key, param.value, info.run_id));
    for (const Tag& tag : run.tags)
        TUNE_TRY_VOID(insert("INSERT INTO tags (key, value, run_uuid) VALUES (?, ?, ?)", tag.key,
                             tag.value, info.run_id));
    for (const Metric& metric : run.metrics) TUNE_TRY_VOID(add_latest(info.run_id, metric));
    for (const DatasetInput& input : run.dataset_inputs)
        TUNE_TRY_VOID(add_dataset(info.experiment_id, info.run_id, input));
    constexpr const char* kEdge =
        "INSERT OR IGNORE INTO inputs (input_uuid, source_type, source_id, destination_type, "
        "destination_id, step) VALUES (?, ?, ?, ?, ?, ?)";
    for (const ModelInput& model : run.model_inputs)
        TUNE_TRY_VOID(insert(kEdge, uuid_of("in", 0, info.run_id, model.model_id),
                             std::string_view("RUN_INPUT"), info.run_id,
                             std::string_view("MODEL_INPUT"), model.model_id, std::int64_t{0}));
    for (const ModelOutput& model : run.model_outputs)
        TUNE_TRY_VOID(insert(kEdge, uuid_of("out", 0, info.run_id, model.model_id),
                             std::string_view("RUN_OUTPUT"), info.run_id,
                             std::string_view("MODEL_OUTPUT"), model.model_id, model.step));
    return {};
}

Result<void> MlflowDbWriter::add_latest(const std::string& run_id, const Metric& metric) {
    const bool is_nan = std::isnan(metric.value);
    return insert(
        "INSERT INTO latest_metrics (key, value, timestamp, step, is_nan, run_uuid) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        metric.key, is_nan ? 0.0 : metric.value, metric.timestamp_ms, metric.step,
        std::int64_t{is_nan}, run_id);
}

Result<void> MlflowDbWriter::add_dataset(ExperimentId experiment, const std::string& run_id,
                                         const DatasetInput& input) {
    const Dataset& dataset = input.dataset;
    const std::string uuid = uuid_of("dataset", experiment, dataset.name, dataset.digest);
    TUNE_TRY_VOID(
        insert("INSERT OR IGNORE INTO datasets (dataset_uuid, experiment_id, name, digest, "
               "dataset_source_type, dataset_source, dataset_schema, dataset_profile) "
               "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
               uuid, experiment, dataset.name, dataset.digest, dataset.source_type, dataset.source,
               OrNull(dataset.schema), OrNull(dataset.profile)));
    const std::string edge = uuid_of("input", experiment, run_id, uuid);
    TUNE_TRY_VOID(
        insert("INSERT INTO inputs (input_uuid, source_type, source_id, "
               "destination_type, destination_id) VALUES (?, 'DATASET', ?, 'RUN', ?)",
               edge, uuid, run_id));
    for (const Tag& tag : input.tags)
        TUNE_TRY_VOID(insert("INSERT INTO input_tags (input_uuid, name, value) VALUES (?, ?, ?)",
                             edge, tag.key, tag.value));
    return {};
}

Result<void> MlflowDbWriter::add_points(const std::string& run_id, std::string_view key,
                                        std::span<const Point> points) {
    TUNE_TRY(write, connection_->prepare("INSERT INTO metrics (key, value, timestamp, run_uuid, "
                                         "step, is_nan) VALUES (?, ?, ?, ?, ?, ?)"));
    for (const Point& point : points) {
        const bool is_nan = std::isnan(point.value);
        write.with(key, is_nan ? 0.0 : point.value, point.timestamp_ms, run_id, point.step,
                   std::int64_t{is_nan});
        TUNE_TRY_VOID(write.run());
    }
    return {};
}

// --- models --------------------------------------------------------------------------------------

Result<void> MlflowDbWriter::add_model(const SourceModel& source) {
    const LoggedModel& model = source.model;
    TUNE_TRY_VOID(insert(
        "INSERT INTO logged_models (model_id, experiment_id, name, artifact_location, "
        "creation_timestamp_ms, last_updated_timestamp_ms, status, lifecycle_stage, model_type, "
        "source_run_id, status_message) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        model.model_id, model.experiment_id, model.name, model.artifact_uri, model.creation_time_ms,
        model.last_updated_time_ms, static_cast<std::int64_t>(model.status),
        std::string_view(name_of(source.life)), OrNull::if_empty(model.model_type),
        OrNull::if_empty(model.source_run_id), OrNull::if_empty(model.status_message)));
    for (const Param& param : model.params)
        TUNE_TRY_VOID(
            insert("INSERT INTO logged_model_params (model_id, experiment_id, "
                   "param_key, param_value) VALUES (?, ?, ?, ?)",
                   model.model_id, model.experiment_id, param.key, param.value));
    for (const Tag& tag : model.tags)
        TUNE_TRY_VOID(
            insert("INSERT INTO logged_model_tags (model_id, experiment_id, tag_key, "
                   "tag_value) VALUES (?, ?, ?, ?)",
                   model.model_id, model.experiment_id, tag.key, tag.value));
    for (const Metric& metric : model.metrics) {
        std::optional<std::string> dataset;
        if (!metric.dataset_name.empty())
            dataset =
                uuid_of("dataset", model.experiment_id, metric.dataset_name, metric.dataset_digest);
        TUNE_TRY_VOID(
            insert("INSERT INTO logged_model_metrics (model_id, metric_name, metric_timestamp_ms, "
                   "metric_step, metric_value, experiment_id, run_id, dataset_uuid, dataset_name, "
                   "dataset_digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                   model.model_id, metric.key, metric.timestamp_ms, metric.step, metric.value,
                   model.experiment_id, metric.run_id, OrNull(dataset),
                   OrNull::if_empty(metric.dataset_name), OrNull::if_empty(metric.dataset_digest)));
    }
    return {};
}

Result<void> MlflowDbWriter::add_registered_model(const SourceRegisteredModel& source) {
    const RegisteredModel& model = source.model;
    TUNE_TRY_VOID(
        insert("INSERT INTO registered_models (name, creation_time, last_updated_time, "
               "description, workspace) VALUES (?, ?, ?, ?, 'default')",
               model.name, model.creation_time_ms, model.last_updated_time_ms, model.description));
    for (const Tag& tag : model.tags)
        TUNE_TRY_VOID(
            insert("INSERT INTO registered_model_tags (key, value, name) "
                   "VALUES (?, ?, ?)",
                   tag.key, tag.value, model.name));
    for (const ModelVersion& version : source.versions)
        TUNE_TRY_VOID(add_version(model.name, version));
    for (const ModelAlias& alias : model.aliases)
        TUNE_TRY_VOID(
            insert("INSERT INTO registered_model_aliases (alias, version, name) "
                   "VALUES (?, ?, ?)",
                   alias.alias, alias.version, model.name));
    return {};
}

Result<void> MlflowDbWriter::add_version(const std::string& name, const ModelVersion& version) {
    TUNE_TRY_VOID(insert(
        "INSERT INTO model_versions (name, version, creation_time, last_updated_time, "
        "description, user_id, current_stage, source, run_id, status, status_message, run_link, "
        "storage_location) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        name, version.version, version.creation_time_ms, version.last_updated_time_ms,
        OrNull(version.description), OrNull(version.user_id), stage_name(version.stage),
        version.source, OrNull(version.run_id), model_version_status_name(version.status),
        OrNull::if_empty(version.status_message), OrNull(version.run_link),
        version.storage_location));  // empty of a deleted version; NULL would mean its source
    for (const Tag& tag : version.tags)
        TUNE_TRY_VOID(
            insert("INSERT INTO model_version_tags (key, value, name, version) "
                   "VALUES (?, ?, ?, ?)",
                   tag.key, tag.value, name, version.version));
    return {};
}

Result<void> MlflowDbWriter::finish() {
    TUNE_TRY_VOID(connection_->execute(std::string(kSchema.substr(kSchema.find(kIndexes)))));
    TUNE_TRY_VOID(
        insert("INSERT INTO workspaces (name, description) VALUES ('default', "
               "'Default workspace for legacy resources')"));
    TUNE_TRY_VOID(insert("INSERT INTO alembic_version (version_num) VALUES (?)",
                         std::string_view(kMlflowHead)));
    TUNE_TRY_VOID(transaction_->commit());
    transaction_.reset();
    connection_.reset();
    const UniqueFd written(::open(file_.c_str(), O_RDONLY | O_CLOEXEC));
    if (!written || ::fsync(written.get()) != 0)
        return Error{
            Code::kResourceExhausted,
            "'" + file_.string() + "' cannot be brought to disk (" + std::strerror(errno) + ")"};
    return {};
}

}  // namespace tune::tracker
