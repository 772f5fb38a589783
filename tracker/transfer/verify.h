#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tracker/store/store.h"
#include "tracker/transfer/importer.h"
#include "tracker/transfer/journal.h"

namespace tune::tracker {

/// What the store should give back.
struct Expected {
    Journal::Kind kind = Journal::Kind::kRun;
    std::string id;
    std::string digest;
    ExperimentId experiment = {};  // of the source
};

struct StoredDigest {
    std::string digest;
    TransferCounts counts;
};

/// Nothing when there is no such run.
[[nodiscard]] Result<std::optional<StoredDigest>> read_stored_run(const Store& store,
                                                                  const std::string& run_id);
[[nodiscard]] Result<std::optional<std::string>> read_stored_model_digest(
    const Store& store, const std::string& model_id);

[[nodiscard]] Result<std::optional<StoredDigest>> read_stored_registered(const Store& store,
                                                                         const std::string& name);

/// Reads everything back; adds to `report.stored` and `report.mismatches`. `source` is asked again
/// only to name what differs. `on_run`: number of runs
/// done; false ends it with kCancelled.
[[nodiscard]] Result<void> verify(const Store& store, Source& source,
                                  const std::vector<Expected>& expected,
                                  const std::function<bool(std::int64_t)>& on_run,
                                  TransferReport& report);

}  // namespace tune::tracker
