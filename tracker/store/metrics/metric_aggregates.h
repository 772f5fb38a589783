#pragma once
// `metrics.loss.min` in filters and order_by of runs: which name, which number of its history.

#include <span>
#include <vector>

#include "base/result.h"
#include "tracker/search/filter.h"
#include "tracker/search/order_by.h"
#include "tracker/sqlite/connection.h"
#include "tracker/store/types.h"

namespace tune::tracker {

/// Gives each metric of `filter` and `keys` whose unquoted name ends with .min, .max, .last or
/// .best its plain name and aggregate (never kBest), unless a run of the experiments has a metric
/// of the whole name: what was logged wins, as in MLflow. `best` is kMin or kMax by the
/// experiments' tags (metric_goal.h). Errors: kInvalidParameterValue when no tag says so, or tags
/// contradict each other. Cost: O(1) per name; O(runs) for one that exists with its ending.
[[nodiscard]] Result<void> resolve_aggregates(sqlite::Connection& connection,
                                              std::span<const ExperimentId> experiment_ids,
                                              search::Condition& filter,
                                              std::vector<search::OrderKey>& keys);

}  // namespace tune::tracker
