#pragma once
// The parts of study.yaml that are maps of settings. Private to tuner/space.

#include "base/result.h"
#include "tuner/space/node.h"
#include "tuner/space/study_config.h"

namespace tune::tuner {

[[nodiscard]] Result<void> read_metric(const Node& node, StudyConfig& config);
[[nodiscard]] Result<void> read_sampler(const Node& node, StudyConfig& config);
[[nodiscard]] Result<void> read_pruner(const Node& node, StudyConfig& config);
[[nodiscard]] Result<void> read_budget(const Node& node, StudyConfig& config);
[[nodiscard]] Result<void> read_retry(const Node& node, StudyConfig& config);
[[nodiscard]] Result<void> read_scrape(const Node& node, StudyConfig& config);

}  // namespace tune::tuner
