// Reads of whole records, deleted ones too, for programs that open tune.db without a server. The
// connection is read-only and its schema must be ours: an older or newer one is refused, never
// migrated, since another process may have it open.

#include "tracker/store/reads/read_transfer.h"

#include <system_error>
#include <utility>

#include "tracker/store/metrics/metric_log.h"
#include "tracker/store/metrics/metric_table.h"
#include "tracker/store/migrations/schema.h"
#include "tracker/store/reads/read_experiments.h"
#include "tracker/store/reads/read_logged_models.h"
#include "tracker/store/reads/runs/read_runs.h"
#include "tracker/store/registry/read_registry.h"

namespace tune::tracker {
namespace {

constexpr int kCacheKib = 16 << 10;

Result<void> check_version(sqlite::Connection& connection) {
    TUNE_TRY(select, connection.prepare("SELECT max(version) FROM schema_version"));
    TUNE_TRY(has_row, select.step());
    const std::int64_t version = has_row ? select.integer(0) : 0;
    if (version == schema_version()) return {};
    return Error{Code::kInvalidState,
                 "'" + connection.path() + "' has schema " + std::to_string(version) +
                     ", this program reads " + std::to_string(schema_version()) +
                     "; start this version's `tune server` on the folder once, which brings it up "
                     "to date."};
}

Result<std::vector<std::string>> list_ids(sqlite::Connection& connection, const char* sql,
                                          ExperimentId experiment_id) {
    std::vector<std::string> ids;
    TUNE_TRY(select, connection.prepare(sql));
    select.with(experiment_id);
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return ids;
        ids.emplace_back(select.text(0));
    }
}

struct SeriesName {
    std::int64_t key_id = 0;
    std::string name;
};

Result<std::vector<SeriesName>> list_series(sqlite::Connection& connection, std::int64_t run_row) {
    std::vector<SeriesName> series;
    TUNE_TRY(select, connection.prepare("SELECT key_id, name FROM latest_metrics JOIN keys USING "
                                        "(key_id) WHERE run_row = ?"));
    select.with(run_row);
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return series;
        series.push_back({select.integer(0), std::string(select.text(1))});
    }
}

Result<void> visit_blocks(sqlite::Connection& connection, std::int64_t run_row,
                          const SeriesName& series, const VisitStoredPoints& visit) {
    std::vector<Point> points;
    TUNE_TRY(select, connection.prepare("SELECT row_count, points FROM metric_blocks WHERE "
                                        "run_row = ? AND key_id = ? ORDER BY first_timestamp_ms, "
                                        "first_step, first_value, first_is_nan"));
    select.with(run_row, series.key_id);
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) break;
        points.clear();
        TUNE_TRY_VOID(
            decode_points(select.blob(1), static_cast<std::size_t>(select.integer(0)), points));
        TUNE_TRY_VOID(visit(series.name, points));
    }
    TUNE_TRY(tail, read_tail(connection, SeriesKey{run_row, series.key_id}));
    if (tail.empty()) return {};
    return visit(series.name, tail);
}

}  // namespace

Result<std::unique_ptr<sqlite::Connection>> open_store_for_reading(
    const std::filesystem::path& directory) {
    const std::filesystem::path file = directory / "tune.db";
    std::error_code missing;
    if (!std::filesystem::is_regular_file(file, missing))
        return Error{Code::kResourceDoesNotExist,
                     "There is no tune.db in '" + directory.string() +
                         "'; name the data folder of a server with --data."};
    sqlite::ConnectionOptions reading;
    reading.access = sqlite::Access::kReadOnly;
    reading.cache_kib = kCacheKib;
    TUNE_TRY(connection, sqlite::Connection::open(file.string(), reading));
    TUNE_TRY_VOID(check_version(*connection));
    return connection;
}

Result<ExperimentId> next_experiment_id(sqlite::Connection& connection) {
    TUNE_TRY(select,
             connection.prepare("SELECT seq + 1 FROM sqlite_sequence WHERE name = 'experiments'"));
    TUNE_TRY(has_row, select.step());
    return has_row ? select.integer(0) : 1;
}

Result<std::vector<Experiment>> list_experiments(sqlite::Connection& connection) {
    std::vector<Experiment> experiments;
    TUNE_TRY(select,
             connection.prepare("SELECT experiment_id FROM experiments ORDER BY experiment_id"));
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return experiments;
        TUNE_TRY(experiment, find_experiment(connection, select.integer(0)));
        if (experiment) experiments.push_back(std::move(*experiment));
    }
}

Result<std::vector<std::string>> list_run_ids(sqlite::Connection& connection,
                                              ExperimentId experiment_id) {
    return list_ids(connection, "SELECT run_id FROM runs WHERE experiment_id = ? ORDER BY run_row",
                    experiment_id);
}

Result<std::vector<std::string>> list_model_ids(sqlite::Connection& connection,
                                                ExperimentId experiment_id) {
    return list_ids(connection,
                    "SELECT model_id FROM logged_models WHERE experiment_id = ? ORDER BY model_row",
                    experiment_id);
}

Result<std::optional<StoredRun>> find_stored_run(sqlite::Connection& connection,
                                                 const std::string& run_id) {
    TUNE_TRY(select, connection.prepare("SELECT deleted_time_ms FROM runs WHERE run_id = ?"));
    TUNE_TRY(has_row, select.with(run_id).step());
    if (!has_row) return std::optional<StoredRun>();
    StoredRun stored;
    if (!select.is_null(0)) stored.deleted_time_ms = select.integer(0);
    TUNE_TRY(run, load_run(connection, run_id));
    stored.run = std::move(run);
    return std::optional<StoredRun>(std::move(stored));
}

Result<std::optional<StoredModel>> find_stored_model(sqlite::Connection& connection,
                                                     const std::string& model_id) {
    TUNE_TRY(select, connection.prepare("SELECT model_row, life FROM logged_models "
                                        "WHERE model_id = ?"));
    TUNE_TRY(has_row, select.with(model_id).step());
    if (!has_row) return std::optional<StoredModel>();
    TUNE_TRY(model, load_logged_model(connection, select.integer(0)));
    return std::optional<StoredModel>(
        StoredModel{std::move(model), static_cast<LifecycleStage>(select.integer(1))});
}

Result<std::vector<std::string>> list_registered_names(sqlite::Connection& connection) {
    std::vector<std::string> names;
    TUNE_TRY(select, connection.prepare("SELECT name FROM registered_models ORDER BY name"));
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return names;
        names.emplace_back(select.text(0));
    }
}

Result<std::optional<StoredRegisteredModel>> find_stored_registered_model(
    sqlite::Connection& connection, const std::string& name) {
    TUNE_TRY(select, connection.prepare("SELECT registered_row FROM registered_models "
                                        "WHERE name = ?"));
    TUNE_TRY(has_row, select.with(name).step());
    if (!has_row) return std::optional<StoredRegisteredModel>();
    const std::int64_t row = select.integer(0);
    StoredRegisteredModel stored;
    TUNE_TRY(model, load_registered_model(connection, row, LatestOrder::kByStageName));
    stored.model = std::move(model);
    stored.model.latest_versions.clear();
    TUNE_TRY(versions, connection.prepare("SELECT version_row FROM model_versions WHERE "
                                          "registered_row = ? ORDER BY version"));
    versions.with(row);
    for (;;) {
        TUNE_TRY(has_version, versions.step());
        if (!has_version) return std::optional<StoredRegisteredModel>(std::move(stored));
        TUNE_TRY(version, load_version(connection, versions.integer(0), false));
        stored.versions.push_back(std::move(version));
    }
}

Result<void> for_each_stored_series(sqlite::Connection& connection, const std::string& run_id,
                                    const VisitStoredPoints& visit) {
    TUNE_TRY(run_row, find_run_row(connection, run_id));
    TUNE_TRY(all, list_series(connection, run_row));
    for (const SeriesName& series : all)
        TUNE_TRY_VOID(visit_blocks(connection, run_row, series, visit));
    return {};
}

}  // namespace tune::tracker
