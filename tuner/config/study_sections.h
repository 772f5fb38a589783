#pragma once
// The keys of study.yaml, and the parts of it that are maps of settings: each a table of options,
// from which reader, writer, schema, API description and page come. Private to tuner/config.

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "tuner/config/study_config.h"
#include "tuner/options/option_table.h"
#include "tuner/space/node.h"

namespace tune::tuner {

/// Longest name of a study.
inline constexpr std::size_t kStudyNameBytesMax = 200;

/// All keys of a study, in the order of the documentation. Reading it leaves out `space`,
/// `space_order`, `forbid`, `derive` and `initial`, which make up the space and are read as one.
[[nodiscard]] const OptionTable& study_options();  // of StudyConfig

[[nodiscard]] const OptionTable& metric_options();         // of MetricConfig
[[nodiscard]] const OptionTable& constraint_options();     // of ConstraintConfig
[[nodiscard]] const OptionTable& budget_options();         // of BudgetConfig
[[nodiscard]] const OptionTable& cost_options();           // of CostBudget
[[nodiscard]] const OptionTable& no_progress_options();    // of NoProgressBudget
[[nodiscard]] const OptionTable& resources_options();      // of ResourcesConfig
[[nodiscard]] const OptionTable& retry_options();          // of RetryConfig
[[nodiscard]] const OptionTable& scrape_options();         // of ScrapeConfig
[[nodiscard]] const OptionTable& log_rule_options();       // of LogRule
[[nodiscard]] const OptionTable& checkpoint_options();     // of CheckpointPolicy
[[nodiscard]] const OptionTable& warm_start_options();     // of WarmStartConfig
[[nodiscard]] const OptionTable& earlier_trial_options();  // of EarlierTrial

[[nodiscard]] Result<void> read_metric(const Node& node, StudyConfig& config);
[[nodiscard]] Result<void> read_constraints(const Node& node, StudyConfig& config);
[[nodiscard]] Result<void> read_budget(const Node& node, StudyConfig& config);
[[nodiscard]] Result<void> read_resources(const Node& node, StudyConfig& config);
[[nodiscard]] Result<void> read_warm_start(const Node& node, StudyConfig& config);
[[nodiscard]] Result<void> read_retry(const Node& node, StudyConfig& config);
[[nodiscard]] Result<void> read_scrape(const Node& node, StudyConfig& config);
[[nodiscard]] Result<void> read_log_rules(const Node& node, StudyConfig& config);
[[nodiscard]] Result<void> read_checkpoints(const Node& node, StudyConfig& config);

/// One number, or a list with one for each objective.
[[nodiscard]] Result<std::vector<double>> read_numbers(const Node& node, const std::string& path);

}  // namespace tune::tuner
