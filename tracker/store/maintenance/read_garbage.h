#pragma once
// What may be removed for good: reads for the garbage collection.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tracker/sqlite/connection.h"
#include "tracker/store/types.h"

namespace tune::tracker {

/// Nothing named: all that is deleted since `deleted_until_ms` or longer. Runs named: those and
/// nothing else. Experiments named: those with their runs and logged models.
struct GarbageChoice {
    std::int64_t deleted_until_ms = 0;
    std::vector<std::string> run_ids = {};
    std::vector<ExperimentId> experiment_ids = {};
};

/// Errors: kResourceDoesNotExist for a named one that is not there; kInvalidParameterValue for one
/// that is not deleted, or not long enough.
[[nodiscard]] Result<void> check_garbage(sqlite::Connection& connection,
                                         const GarbageChoice& choice);

/// A piece of a listing, continued after `next_row`; the last one is empty.
struct GarbagePage {
    std::vector<std::string> ids;
    std::int64_t next_row = 0;
};

/// At most `limit` of them. Cost: one pass over the runs (models) for the whole listing.
[[nodiscard]] Result<GarbagePage> garbage_runs(sqlite::Connection& connection,
                                               const GarbageChoice& choice, std::int64_t after_row,
                                               std::int64_t limit);
[[nodiscard]] Result<GarbagePage> garbage_models(sqlite::Connection& connection,
                                                 const GarbageChoice& choice,
                                                 std::int64_t after_row, std::int64_t limit);
[[nodiscard]] Result<std::vector<ExperimentId>> garbage_experiments(sqlite::Connection& connection,
                                                                    const GarbageChoice& choice);

/// Points of the metrics of these runs.
[[nodiscard]] Result<std::int64_t> count_points(sqlite::Connection& connection,
                                                const std::vector<std::string>& run_ids);

/// Numbers of blocks of metric points of hidden runs, at most `limit`, in ascending order. Cost: an
/// entry of an index each.
[[nodiscard]] Result<std::vector<std::int64_t>> garbage_blocks(sqlite::Connection& connection,
                                                               std::int64_t limit);

struct GarbageFolder {
    std::int64_t folder_row = 0;
    std::string artifact_uri;
};

/// Folders to be removed from the disk, after `after_row`.
[[nodiscard]] Result<std::vector<GarbageFolder>> garbage_folders(sqlite::Connection& connection,
                                                                 std::int64_t after_row,
                                                                 std::int64_t limit);

/// Marks in `used` (by id) the names that rows of runs `first_run_row` and later use, and returns
/// the run to continue from, or nothing at the end. Looks at about `rows_max` rows.
[[nodiscard]] Result<std::optional<std::int64_t>> mark_used_keys(sqlite::Connection& connection,
                                                                 std::int64_t first_run_row,
                                                                 std::int64_t rows_max,
                                                                 std::vector<bool>& used);

/// Ids of names after `after_key` that are not marked, at most `limit`; fewer at the end.
[[nodiscard]] Result<std::vector<std::int64_t>> unmarked_keys(sqlite::Connection& connection,
                                                              const std::vector<bool>& used,
                                                              std::int64_t after_key,
                                                              std::int64_t limit);

/// The largest id of a name.
[[nodiscard]] Result<std::int64_t> last_key(sqlite::Connection& connection);

/// Bytes of the file, and of its pages that hold nothing.
struct FileUse {
    std::int64_t file_bytes = 0;
    std::int64_t free_bytes = 0;
    /// Whether free pages can be given back one by one; false for files of older versions.
    bool can_shrink = false;
};
[[nodiscard]] Result<FileUse> file_use(sqlite::Connection& connection);

}  // namespace tune::tracker
