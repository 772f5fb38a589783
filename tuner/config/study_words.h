#pragma once
// Words that the reader of studies shares with the flags. Private to tuner/config.

#include <optional>
#include <string>
#include <string_view>

#include "tuner/config/study_config.h"

namespace tune::tuner {

[[nodiscard]] std::optional<Goal> goal_from_name(std::string_view name);

/// Sets `take` and `take_count`; false for an unknown word.
[[nodiscard]] bool aggregation_from_name(std::string_view name, MetricConfig& metric);

/// MLflow's rule for metric names.
[[nodiscard]] std::optional<std::string> metric_name_error(std::string_view name);

}  // namespace tune::tuner
