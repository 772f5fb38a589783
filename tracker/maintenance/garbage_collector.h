#pragma once

#include <cstdint>

#include "base/result.h"
#include "tracker/artifacts/artifact_store.h"
#include "tracker/maintenance/job.h"
#include "tracker/store/maintenance/read_garbage.h"
#include "tracker/store/store.h"

namespace tune::tracker {

/// Rows other than blocks of metric points in one transaction of the collection: about 1 ms of the
/// writer's time, which other writes may have to wait for.
inline constexpr std::int64_t kGarbageRowsAtOnce = 64;

struct GarbageReport {
    std::int64_t runs = 0;
    std::int64_t experiments = 0;
    std::int64_t logged_models = 0;
    std::int64_t metric_points = 0;
    std::int64_t datasets = 0;
    std::int64_t names = 0;  // of metrics, params and tags
    std::int64_t answers = 0;
    std::int64_t folders = 0;
    /// Folders of artifacts that lie elsewhere (s3://...): not touched.
    std::int64_t folders_elsewhere = 0;
    /// Folders that could not be removed; the next collection tries again.
    std::int64_t folders_failed = 0;
    std::int64_t file_bytes_before = 0;
    std::int64_t file_bytes = 0;
    /// In the file; later writes use them.
    std::int64_t free_bytes = 0;
};

/// Removes for good what `choice` says, and what earlier collections had to leave, in small
/// transactions between which other writes are made. Blocks; for a thread of its own. Memory: a
/// page of 64 ids, 2 MB of blocks' numbers, and a bit for each name of a metric, param or tag. May
/// be stopped or killed at any time: the next one resumes. Errors: those of check_garbage, before
/// anything is changed; those of Store::execute.
[[nodiscard]] Result<GarbageReport> collect_garbage(Store& store, const ArtifactStore& artifacts,
                                                    const GarbageChoice& choice,
                                                    const Report& report);

/// What collect_garbage would remove: runs, experiments, logged models and points. Changes nothing.
[[nodiscard]] Result<GarbageReport> count_garbage(const Store& store, const GarbageChoice& choice,
                                                  const Report& report);

}  // namespace tune::tracker
