#pragma once
// The state of a Delta table at one version, read from its log.

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "loader/delta/action.h"
#include "loader/delta/log_files.h"
#include "loader/source/object_source.h"

namespace tune::loader {

struct DeltaSnapshot {
    std::int64_t version = 0;
    DeltaProtocol protocol = {};
    DeltaMetadata metadata = {};
    /// Sorted by path.
    std::vector<DeltaFile> files = {};
};

/// Reads a checkpoint that is a Parquet file (`path` within the source) as actions.
using ReadCheckpoint =
    std::function<Result<std::vector<DeltaAction>>(const ObjectSource& source, std::string path)>;

/// Lists and replays the log. `version` and `timestamp` (either may be missing) choose the state: a
/// commit's time is its inCommitTimestamp or what its commitInfo states, made to ascend. Errors:
/// kResourceDoesNotExist for a version or time that the log does not hold; kDataLoss naming the
/// damaged file; kNotImplemented for a protocol or feature that is not known.
[[nodiscard]] Result<DeltaSnapshot> read_snapshot(const ObjectSource& source,
                                                  std::optional<std::int64_t> version,
                                                  const std::string& timestamp,
                                                  const ReadCheckpoint& read_checkpoint);

}  // namespace tune::loader
