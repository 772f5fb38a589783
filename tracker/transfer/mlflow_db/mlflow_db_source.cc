// Reads any schema of MLflow by the columns that it has, not by its version number. The file is
// never written: without a log or journal beside it, it is opened as immutable; with one, SQLite
// must take locks to see all of it. All its texts are untrusted input; sizes of values are bounded
// by the connection.

#include "tracker/transfer/mlflow_db/mlflow_db_source.h"

#include <sys/stat.h>

#include <array>
#include <cmath>
#include <fstream>
#include <utility>

#include "tracker/sqlite/connection.h"
#include "tracker/sqlite/transaction.h"
#include "tracker/transfer/mlflow_db/columns.h"
#include "tracker/transfer/mlflow_db/read_registry_rows.h"
#include "tracker/transfer/source/local_files.h"
#include "tracker/transfer/text.h"

namespace tune::tracker {
namespace {

namespace fs = std::filesystem;

constexpr int kReadCacheKib = 64 << 10;
/// Points handed on at a time.
constexpr std::size_t kPiecePoints = 16'384;

/// Tables that are moved, and those that hold nothing of the user's.
constexpr std::array kKnownTables = {"experiments",
                                     "experiment_tags",
                                     "runs",
                                     "metrics",
                                     "latest_metrics",
                                     "params",
                                     "tags",
                                     "datasets",
                                     "inputs",
                                     "input_tags",
                                     "logged_models",
                                     "logged_model_metrics",
                                     "logged_model_params",
                                     "logged_model_tags",
                                     "registered_models",
                                     "registered_model_tags",
                                     "model_versions",
                                     "model_version_tags",
                                     "registered_model_aliases",
                                     "alembic_version",
                                     "workspaces",
                                     "scheduler_leases",
                                     "job_locks"};

class MlflowDbSource final : public Source {
public:
    MlflowDbSource(std::unique_ptr<sqlite::Connection> connection, Columns columns,
                   LocalFiles files, std::string location)
        : connection_(std::move(connection)),
          columns_(std::move(columns)),
          files_(std::move(files)),
          location_(std::move(location)) {}

    std::string location() const override { return location_; }
    std::int64_t changed_texts() const override { return changed_texts_; }
    Result<SourceContents> read_contents() override;
    Result<std::vector<std::string>> list_runs(ExperimentId experiment) override;
    Result<SourceRun> read_run(ExperimentId experiment, const std::string& run_id) override;
    Result<void> for_each_series(const VisitPoints& visit) override;
    Result<std::vector<std::string>> list_models(ExperimentId experiment) override;
    Result<SourceModel> read_model(ExperimentId experiment, const std::string& model_id) override;

    Result<std::vector<std::string>> list_registered_models() override {
        return list_registered_rows(*connection_, columns_);
    }
    Result<SourceRegisteredModel> read_registered_model(const std::string& name) override {
        return read_registered_rows(*connection_, columns_, name, changed_texts_);
    }

    Result<SourceFiles> list_files(const ArtifactOwner& owner) override {
        return files_.list(owner.uri);
    }
    Result<void> read_file(const ArtifactOwner& owner, const SourceFile& file,
                           const Sink& sink) override {
        return files_.read(owner.uri, file, sink);
    }
    Result<UniqueFd> open_file(const ArtifactOwner& owner, const SourceFile& file) override {
        return files_.open(owner.uri, file);
    }

private:
    using Statement = sqlite::Statement;

    std::string text(const Statement& row, int column) {
        return clean_text(row.text(column), changed_texts_);
    }
    std::optional<std::string> optional_text(const Statement& row, int column) {
        if (row.is_null(column)) return std::nullopt;
        return text(row, column);
    }
    static std::optional<std::int64_t> optional_integer(const Statement& row, int column) {
        if (row.is_null(column)) return std::nullopt;
        return row.integer(column);
    }
    Result<std::vector<std::string>> list_ids(const std::string& sql, ExperimentId experiment);
    template <class Item, class Id>
    Result<void> read_pairs(const char* table, const char* owner, const char* key,
                            const char* value, const Id& id, std::vector<Item>& items);
    Result<void> read_run_info(const std::string& run_id, SourceRun& source);
    Result<void> read_datasets(const std::string& run_id, Run& run);
    Result<void> read_model_links(const std::string& run_id, Run& run);
    Result<std::string> read_history_stamp(const std::string& run_id);
    Result<void> read_model_metrics(LoggedModel& model);
    Result<std::int64_t> count(const std::string& sql);
    Result<void> count_left_behind(SourceContents& contents);

    std::unique_ptr<sqlite::Connection> connection_;
    Columns columns_;
    LocalFiles files_;
    std::string location_;
    std::string run_id_;  // of the last read_run
    std::int64_t changed_texts_ = 0;
};

LifecycleStage stage_of(std::string_view name) {
    return name == "deleted" ? LifecycleStage::kDeleted : LifecycleStage::kActive;
}

Result<std::int64_t> MlflowDbSource::count(const std::string& sql) {
    TUNE_TRY(select, connection_->prepare(sql));
    TUNE_TRY(has_row, select.step());
    return has_row ? select.integer(0) : std::int64_t{0};
}

Result<void> MlflowDbSource::count_left_behind(SourceContents& contents) {
    for (const std::string& table : columns_.tables()) {
        bool known = table.starts_with("sqlite_") || table.find('"') != std::string::npos;
        for (const char* name : kKnownTables) known = known || table == name;
        if (known) continue;
        TUNE_TRY(rows, count("SELECT count(*) FROM \"" + table + "\""));
        if (rows > 0) contents.left_behind.push_back({"rows of " + table, rows});
    }
    TUNE_TRY(orphans, count("SELECT count(*) FROM runs WHERE experiment_id IS NULL OR "
                            "experiment_id NOT IN (SELECT experiment_id FROM experiments)"));
    if (orphans > 0) contents.left_behind.push_back({"runs whose experiment is missing", orphans});
    if (columns_.has("datasets", "dataset_uuid") && columns_.has("inputs", "source_id")) {
        TUNE_TRY(unused, count("SELECT count(*) FROM datasets WHERE dataset_uuid NOT IN (SELECT "
                               "source_id FROM inputs WHERE source_type = 'DATASET')"));
        if (unused > 0)
            contents.left_behind.push_back({"datasets that no run has as an input", unused});
    }
    if (columns_.has("experiments", "workspace")) {
        TUNE_TRY(others, count("SELECT count(DISTINCT workspace) FROM experiments WHERE "
                               "workspace <> 'default'"));
        if (others > 0)
            contents.notes.push_back("experiments of " + std::to_string(others) +
                                     " other workspaces come into the only one that tune has");
    }
    return {};
}

Result<SourceContents> MlflowDbSource::read_contents() {
    SourceContents contents;
    TUNE_TRY(select, connection_->prepare(
                         columns_.select("experiments",
                                         {"experiment_id", "name", "artifact_location",
                                          "lifecycle_stage", "creation_time", "last_update_time"}) +
                         " ORDER BY experiment_id"));
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) break;
        Experiment experiment;
        experiment.experiment_id = select.integer(0);
        experiment.name = text(select, 1);
        experiment.artifact_location = text(select, 2);
        experiment.lifecycle_stage = stage_of(select.text(3));
        experiment.creation_time_ms = select.integer(4);
        experiment.last_update_time_ms = select.integer(5);
        TUNE_TRY_VOID(read_pairs("experiment_tags", "experiment_id", "key", "value",
                                 experiment.experiment_id, experiment.tags));
        contents.experiments.push_back(std::move(experiment));
    }
    TUNE_TRY(runs, count("SELECT count(*) FROM runs"));
    contents.run_count = runs;
    TUNE_TRY_VOID(count_left_behind(contents));
    return contents;
}

Result<std::vector<std::string>> MlflowDbSource::list_ids(const std::string& sql,
                                                          ExperimentId experiment) {
    std::vector<std::string> ids;
    TUNE_TRY(select, connection_->prepare(sql));
    select.with(experiment);
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return ids;
        ids.emplace_back(select.text(0));
    }
}

Result<std::vector<std::string>> MlflowDbSource::list_runs(ExperimentId experiment) {
    return list_ids("SELECT run_uuid FROM runs WHERE experiment_id = ? ORDER BY rowid", experiment);
}

Result<std::vector<std::string>> MlflowDbSource::list_models(ExperimentId experiment) {
    if (!columns_.has("logged_models")) return std::vector<std::string>();
    return list_ids("SELECT model_id FROM logged_models WHERE experiment_id = ? ORDER BY rowid",
                    experiment);
}

template <class Item, class Id>
Result<void> MlflowDbSource::read_pairs(const char* table, const char* owner, const char* key,
                                        const char* value, const Id& id, std::vector<Item>& items) {
    if (!columns_.has(table)) return {};
    TUNE_TRY(select, connection_->prepare(columns_.select(table, {key, value}) + " WHERE " +
                                          std::string(owner) + " = ?"));
    select.with(id);
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return {};
        items.push_back({text(select, 0), text(select, 1)});
    }
}

Result<SourceRun> MlflowDbSource::read_run(ExperimentId experiment, const std::string& run_id) {
    TUNE_TRY(transaction, sqlite::Transaction::begin_read(*connection_));
    SourceRun source;
    source.run.info.experiment_id = experiment;
    TUNE_TRY_VOID(read_run_info(run_id, source));
    TUNE_TRY_VOID(read_pairs("params", "run_uuid", "key", "value", run_id, source.run.params));
    TUNE_TRY_VOID(read_pairs("tags", "run_uuid", "key", "value", run_id, source.run.tags));
    TUNE_TRY_VOID(read_datasets(run_id, source.run));
    TUNE_TRY_VOID(read_model_links(run_id, source.run));
    TUNE_TRY(stamp, read_history_stamp(run_id));
    source.history_stamp = std::move(stamp);
    run_id_ = run_id;
    TUNE_TRY_VOID(transaction.commit());
    return source;
}

Result<void> MlflowDbSource::read_run_info(const std::string& run_id, SourceRun& source) {
    TUNE_TRY(select,
             connection_->prepare(
                 columns_.select("runs", {"name", "user_id", "status", "start_time", "end_time",
                                          "lifecycle_stage", "artifact_uri", "deleted_time"}) +
                 " WHERE run_uuid = ?"));
    TUNE_TRY(has_row, select.with(run_id).step());
    if (!has_row)
        return Error{Code::kDataLoss, "Run '" + shown(run_id) + "' has vanished from '" +
                                          location_ + "' during the import; run it again."};
    RunInfo& info = source.run.info;
    info.run_id = run_id;
    info.run_name = text(select, 0);
    info.user_id = text(select, 1);
    const auto status = status_from_name(select.text(2));
    if (!status && !select.is_null(2))
        return Error{Code::kDataLoss, "Run '" + shown(run_id) + "' in '" + location_ +
                                          "' has the unknown status '" + shown(select.text(2)) +
                                          "'."};
    info.status = status.value_or(RunStatus::kRunning);
    info.start_time_ms = select.integer(3);
    info.end_time_ms = optional_integer(select, 4);
    info.lifecycle_stage = stage_of(select.text(5));
    info.artifact_uri = text(select, 6);
    source.deleted_time_ms = optional_integer(select, 7);
    return {};
}

Result<void> MlflowDbSource::read_datasets(const std::string& run_id, Run& run) {
    if (!columns_.has("datasets") || !columns_.has("inputs")) return {};
    TUNE_TRY(select, connection_->prepare(
                         "SELECT i.input_uuid, d.name, d.digest, d.dataset_source_type, "
                         "d.dataset_source, d.dataset_schema, d.dataset_profile FROM inputs i JOIN "
                         "datasets d ON d.dataset_uuid = i.source_id WHERE i.destination_type = "
                         "'RUN' AND i.destination_id = ? AND i.source_type = 'DATASET' "
                         "ORDER BY i.rowid"));
    select.with(run_id);
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return {};
        DatasetInput input;
        input.dataset = {text(select, 1), text(select, 2),          text(select, 3),
                         text(select, 4), optional_text(select, 5), optional_text(select, 6)};
        TUNE_TRY_VOID(read_pairs("input_tags", "input_uuid", "name", "value",
                                 std::string(select.text(0)), input.tags));
        run.dataset_inputs.push_back(std::move(input));
    }
}

Result<void> MlflowDbSource::read_model_links(const std::string& run_id, Run& run) {
    if (!columns_.has("inputs")) return {};
    TUNE_TRY(select, connection_->prepare(
                         columns_.select("inputs", {"source_type", "destination_id", "step"}) +
                         " WHERE source_id = ? AND source_type IN ('RUN_INPUT', 'RUN_OUTPUT') AND "
                         "destination_type IN ('MODEL_INPUT', 'MODEL_OUTPUT') ORDER BY rowid"));
    select.with(run_id);
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return {};
        if (select.text(0) == "RUN_INPUT")
            run.model_inputs.push_back({text(select, 1)});
        else
            run.model_outputs.push_back({text(select, 1), select.integer(2)});
    }
}

/// The latest values: they change with all but the oddest additions to the history.
Result<std::string> MlflowDbSource::read_history_stamp(const std::string& run_id) {
    std::string stamp;
    if (!columns_.has("latest_metrics")) return stamp;
    TUNE_TRY(select,
             connection_->prepare(columns_.select("latest_metrics",
                                                  {"key", "value", "timestamp", "step", "is_nan"}) +
                                  " WHERE run_uuid = ? ORDER BY key"));
    select.with(run_id);
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return stamp;
        stamp += std::string(select.text(0)) + '\0' + std::to_string(select.real(1)) + ' ' +
                 std::to_string(select.integer(2)) + ' ' + std::to_string(select.integer(3)) + ' ' +
                 std::to_string(select.integer(4)) + '\n';
    }
}

Result<void> MlflowDbSource::for_each_series(const VisitPoints& visit) {
    if (!columns_.has("metrics")) return {};
    TUNE_TRY(transaction, sqlite::Transaction::begin_read(*connection_));
    TUNE_TRY(select, connection_->prepare(columns_.select("metrics", {"key", "value", "timestamp",
                                                                      "step", "is_nan"}) +
                                          " WHERE run_uuid = ? ORDER BY key" +
                                          (columns_.has("metrics", "step") ? ", step" : "")));
    select.with(run_id_);
    std::string raw_key;
    std::string key;
    std::vector<Point> points;
    for (;;) {
        TUNE_TRY(has_row, select.step());
        const bool is_other = !has_row || select.text(0) != raw_key;
        if (!points.empty() && (is_other || points.size() >= kPiecePoints)) {
            TUNE_TRY_VOID(visit(key, points));
            points.clear();
        }
        if (!has_row) break;
        if (is_other) {
            raw_key = select.text(0);
            key = text(select, 0);
        }
        const bool is_nan = select.integer(4) != 0 || select.is_null(1);
        points.push_back(
            {select.integer(2), select.integer(3), is_nan ? std::nan("") : select.real(1)});
    }
    select.reset();
    return transaction.commit();
}

Result<SourceModel> MlflowDbSource::read_model(ExperimentId experiment,
                                               const std::string& model_id) {
    TUNE_TRY(transaction, sqlite::Transaction::begin_read(*connection_));
    TUNE_TRY(select, connection_->prepare(
                         columns_.select("logged_models",
                                         {"name", "artifact_location", "creation_timestamp_ms",
                                          "last_updated_timestamp_ms", "status", "lifecycle_stage",
                                          "model_type", "source_run_id", "status_message"}) +
                         " WHERE model_id = ?"));
    TUNE_TRY(has_row, select.with(model_id).step());
    if (!has_row)
        return Error{Code::kDataLoss, "Logged model '" + shown(model_id) + "' has vanished from '" +
                                          location_ + "' during the import; run it again."};
    SourceModel source;
    LoggedModel& model = source.model;
    model.model_id = model_id;
    model.experiment_id = experiment;
    model.name = text(select, 0);
    model.artifact_uri = text(select, 1);
    model.creation_time_ms = select.integer(2);
    model.last_updated_time_ms = select.integer(3);
    const std::int64_t status = select.integer(4);
    model.status = status >= 0 && status <= 3 ? static_cast<LoggedModelStatus>(status)
                                              : LoggedModelStatus::kUnspecified;
    source.life = stage_of(select.text(5));
    model.model_type = text(select, 6);
    model.source_run_id = text(select, 7);
    model.status_message = text(select, 8);
    select.reset();
    TUNE_TRY_VOID(read_pairs("logged_model_params", "model_id", "param_key", "param_value",
                             model_id, model.params));
    TUNE_TRY_VOID(
        read_pairs("logged_model_tags", "model_id", "tag_key", "tag_value", model_id, model.tags));
    TUNE_TRY_VOID(read_model_metrics(model));
    TUNE_TRY_VOID(transaction.commit());
    return source;
}

Result<void> MlflowDbSource::read_model_metrics(LoggedModel& model) {
    if (!columns_.has("logged_model_metrics")) return {};
    TUNE_TRY(select,
             connection_->prepare(
                 columns_.select("logged_model_metrics",
                                 {"metric_name", "metric_value", "metric_timestamp_ms",
                                  "metric_step", "run_id", "dataset_name", "dataset_digest"}) +
                 " WHERE model_id = ?"));
    select.with(model.model_id);
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return {};
        Metric metric;
        metric.key = text(select, 0);
        metric.value = select.is_null(1) ? std::nan("") : select.real(1);
        metric.timestamp_ms = select.integer(2);
        metric.step = select.integer(3);
        metric.run_id = text(select, 4);
        metric.dataset_name = text(select, 5);
        metric.dataset_digest = text(select, 6);
        model.metrics.push_back(std::move(metric));
    }
}

// --- opening -------------------------------------------------------------------------------------

bool is_file_with_bytes(const fs::path& file) {
    std::error_code missing;
    return fs::is_regular_file(file, missing) && fs::file_size(file, missing) > 0;
}

/// Whether the file is in WAL mode, by its header. Errors: it is no SQLite file.
Result<bool> read_header(const fs::path& file) {
    struct stat status {};
    if (::stat(file.c_str(), &status) != 0)
        return Error{Code::kResourceDoesNotExist, "There is no file '" + file.string() + "'."};
    std::array<char, 100> header{};
    std::ifstream in(file, std::ios::binary);
    in.read(header.data(), header.size());
    const std::string_view begin(header.data(), 16);
    if (!S_ISREG(status.st_mode) || in.gcount() != static_cast<std::streamsize>(header.size()) ||
        begin != std::string_view("SQLite format 3\0", 16))
        return Error{Code::kInvalidParameterValue,
                     "'" + file.string() +
                         "' is not an SQLite database; name an mlflow.db, an mlruns folder, or "
                         "the http:// address of a server."};
    return header[18] == 2;
}

/// A log or journal beside the file holds writes that are not in it.
Result<sqlite::Access> choose_access(const fs::path& file) {
    TUNE_TRY(is_wal, read_header(file));
    if (is_file_with_bytes(file.string() + "-journal"))
        return Error{
            Code::kResourceConflict,
            "'" + file.string() +
                "-journal' holds a write that is under way or was interrupted. Wait for the "
                "server that uses the database, or let MLflow open it once, then import "
                "again."};
    if (!is_wal) return sqlite::Access::kReadOnly;
    return is_file_with_bytes(file.string() + "-wal") ? sqlite::Access::kReadOnly
                                                      : sqlite::Access::kReadImmutable;
}

Result<void> check(sqlite::Connection& connection) {
    TUNE_TRY(select, connection.prepare("PRAGMA quick_check(1)"));
    TUNE_TRY(has_row, select.step());
    const std::string verdict(select.text(0));
    if (has_row && verdict == "ok") return {};
    return Error{Code::kDataLoss, "'" + connection.path() + "' is damaged (" + shown(verdict) +
                                      "); restore it from a copy, or repair it with `sqlite3 FILE "
                                      ".recover`, then import again."};
}

}  // namespace

Result<std::unique_ptr<Source>> open_mlflow_db(MlflowDbOptions options) {
    const fs::path file = fs::absolute(options.file).lexically_normal();
    TUNE_TRY(access, choose_access(file));
    sqlite::ConnectionOptions reading;
    reading.access = access;
    reading.cache_kib = kReadCacheKib;
    reading.is_foreign = true;
    TUNE_TRY(connection, sqlite::Connection::open(file.string(), reading));
    if (options.check) TUNE_TRY_VOID(check(*connection));
    TUNE_TRY(columns, Columns::read(*connection));
    for (const auto& [table, column] :
         {std::pair{"experiments", "experiment_id"}, std::pair{"experiments", "name"},
          std::pair{"runs", "run_uuid"}, std::pair{"runs", "experiment_id"}})
        if (!columns.has(table, column))
            return Error{Code::kInvalidParameterValue,
                         "'" + file.string() + "' is not a database of MLflow: it has no " + table +
                             "." + column + "."};
    LocalFiles files(file.parent_path());
    for (const fs::path& root : options.artifact_roots) files.allow(root, true);
    files.allow(file.parent_path() / "mlartifacts", true);
    files.allow(file.parent_path() / "mlruns", false);
    return std::unique_ptr<Source>(std::make_unique<MlflowDbSource>(
        std::move(connection), std::move(columns), std::move(files), file.string()));
}

}  // namespace tune::tracker
