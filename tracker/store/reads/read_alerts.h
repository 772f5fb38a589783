#pragma once
// What alerts on runs must know after a start.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tracker/sqlite/connection.h"
#include "tracker/store/types.h"

namespace tune::tracker {

struct RunningRun {
    std::string run_id;
    ExperimentId experiment_id = 0;
    std::string parent_run_id;  ///< tag mlflow.parentRunId; empty: none
    bool is_trial = false;      ///< tag tune.trial: the tuner decides on it
    bool is_study = false;      ///< tag tune.kind
};

/// At most `limit` runs that are RUNNING and not deleted. Cost: one pass over the runs.
[[nodiscard]] Result<std::vector<RunningRun>> running_runs(sqlite::Connection& connection,
                                                           std::int64_t limit);

/// The value of a run's tag, if it has one.
[[nodiscard]] Result<std::optional<std::string>> find_run_tag(sqlite::Connection& connection,
                                                              std::string_view run_id,
                                                              std::string_view key);

}  // namespace tune::tracker
