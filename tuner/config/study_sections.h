#pragma once
// The parts of study.yaml that are maps of settings. Private to tuner/space.

#include <string>
#include <vector>

#include "base/result.h"
#include "tuner/config/study_config.h"
#include "tuner/space/node.h"

namespace tune::tuner {

/// The `type` of a section: `sampler: tpe` is short for `sampler: {type: tpe}`, and null for
/// {type: none} where that is known.
[[nodiscard]] Result<std::string> type_of(const Node& node, const std::string& path,
                                          const std::vector<std::string>& known);

[[nodiscard]] Result<void> read_metric(const Node& node, StudyConfig& config);
[[nodiscard]] Result<void> read_constraints(const Node& node, StudyConfig& config);
[[nodiscard]] Result<void> read_sampler(const Node& node, StudyConfig& config);
[[nodiscard]] Result<void> read_pruner(const Node& node, StudyConfig& config);
[[nodiscard]] Result<void> read_budget(const Node& node, StudyConfig& config);
[[nodiscard]] Result<void> read_warm_start(const Node& node, StudyConfig& config);
[[nodiscard]] Result<void> read_retry(const Node& node, StudyConfig& config);
[[nodiscard]] Result<void> read_scrape(const Node& node, StudyConfig& config);

}  // namespace tune::tuner
