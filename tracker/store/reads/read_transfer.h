#pragma once
// Whole reads for tracker/transfer: deleted things too, histories piece by piece.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tracker/sqlite/connection.h"
#include "tracker/store/metrics/metric_block.h"
#include "tracker/store/registry/registry_types.h"
#include "tracker/store/types.h"

namespace tune::tracker {

struct StoredRun {
    Run run;
    std::optional<std::int64_t> deleted_time_ms;
};

struct StoredModel {
    LoggedModel model;
    LifecycleStage life = LifecycleStage::kActive;
};

/// tune.db of a data directory for reading, also while a server has it open: SQLite's log lets a
/// reader of another process see the last commit. Errors: kResourceDoesNotExist; kInvalidState for
/// another version's schema; those of Connection::open.
[[nodiscard]] Result<std::unique_ptr<sqlite::Connection>> open_store_for_reading(
    const std::filesystem::path& directory);

/// Higher than that of any experiment that there ever was, purged ones too.
[[nodiscard]] Result<ExperimentId> next_experiment_id(sqlite::Connection& connection);
/// By id, deleted ones too.
[[nodiscard]] Result<std::vector<Experiment>> list_experiments(sqlite::Connection& connection);
/// In the order in which they were made.
[[nodiscard]] Result<std::vector<std::string>> list_run_ids(sqlite::Connection& connection,
                                                            ExperimentId experiment_id);
[[nodiscard]] Result<std::vector<std::string>> list_model_ids(sqlite::Connection& connection,
                                                              ExperimentId experiment_id);
[[nodiscard]] Result<std::optional<StoredRun>> find_stored_run(sqlite::Connection& connection,
                                                               const std::string& run_id);
[[nodiscard]] Result<std::optional<StoredModel>> find_stored_model(sqlite::Connection& connection,
                                                                   const std::string& model_id);

/// Registered models with all versions, deleted ones too; in the order of names.
struct StoredRegisteredModel {
    RegisteredModel model;  // without latest_versions
    std::vector<ModelVersion> versions;
};
[[nodiscard]] Result<std::vector<std::string>> list_registered_names(
    sqlite::Connection& connection);
[[nodiscard]] Result<std::optional<StoredRegisteredModel>> find_stored_registered_model(
    sqlite::Connection& connection, const std::string& name);

/// Calls `visit` with all points of all metrics of the run, in pieces; those of a key one after the
/// other, each ordered in itself. Reads a block at a time.
using VisitStoredPoints =
    std::function<Result<void>(std::string_view key, std::span<const Point> points)>;
[[nodiscard]] Result<void> for_each_stored_series(sqlite::Connection& connection,
                                                  const std::string& run_id,
                                                  const VisitStoredPoints& visit);

}  // namespace tune::tracker
