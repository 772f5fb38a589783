#pragma once

#include <string_view>

namespace tune::tracker {

/// The tag of an experiment that says whether less or more of a metric is better ("min" or "max"):
/// this and the metric's name.
inline constexpr std::string_view kMetricGoalTag = "tune.metric_goal.";

}  // namespace tune::tracker
