#pragma once
// study.yaml as a struct: everything that says what a study is, whichever way it came in (YAML,
// JSON, REST, flags). Parsing refuses what it does not know, with line, column and a suggestion.
//
// Threads: plain values and pure functions. Cost: linear in the text.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "tuner/checkpoint_policy.h"
#include "tuner/log_rule.h"
#include "tuner/options/duration.h"
#include "tuner/pruner/pruner_config.h"
#include "tuner/sampler/sampler_config.h"
#include "tuner/space/goal.h"
#include "tuner/space/space.h"

namespace tune::tuner {

/// Largest study file. 10,000 parameters are about 1 MB.
inline constexpr std::size_t kStudyBytesMax = 8u << 20;

/// How a run's metric history becomes the trial's value.
enum class Aggregation { kBest, kLast, kMeanLast };

struct MetricConfig {
    std::string name;  // empty: not given yet
    Goal goal = Goal::kMinimize;
    std::string step;  // what a step is called ("epoch"); shown, not interpreted
    Aggregation aggregation = Aggregation::kBest;
    int take_count = 1;  // kMeanLast: how many of the last values ("mean_last_5")

    [[nodiscard]] bool operator==(const MetricConfig&) const = default;
};

/// Objectives of one study. Sampling by dominated volume costs grow steeply with their number.
inline constexpr std::size_t kObjectivesMax = 8;
/// Constraints of one study.
inline constexpr std::size_t kConstraintsMax = 16;

/// A bound on a metric. A trial whose value lies beyond it is complete but infeasible: never a best
/// trial, and for samplers worse than every feasible one, by how far it lies beyond.
struct ConstraintConfig {
    MetricConfig metric;             // the goal says nothing here
    std::optional<double> min = {};  // at least one of min and max is given
    std::optional<double> max = {};

    [[nodiscard]] bool operator==(const ConstraintConfig&) const = default;
};

/// What all trials together may cost.
struct CostBudget {
    enum class Of {
        kSeconds,     // of all attempts, failed and lost ones too
        kGpuSeconds,  // the same times gpus_per_trial
        kMetric       // the greatest value a trial reports of `metric`
    };
    Of of = Of::kSeconds;
    std::string metric;  // kMetric
    double max = 0;      // seconds, GPU seconds or the metric's unit; > 0
    /// kMetric: no trial may cost more; one starts only where that much is left.
    std::optional<double> per_trial = {};  // > 0, at most `max`

    [[nodiscard]] bool operator==(const CostBudget&) const = default;
};

/// The study ends when so many trials in a row have ended without a value that is better by more
/// than `min_delta`; with several objectives: without one that beats each of the front's trials in
/// some objective by more than that.
struct NoProgressBudget {
    std::uint64_t trials = 0;  // >= 1
    double min_delta = 0;      // >= 0

    [[nodiscard]] bool operator==(const NoProgressBudget&) const = default;
};

struct BudgetConfig {
    std::optional<std::uint64_t> trials;  // none: until stopped or out of time
    std::optional<std::int64_t> time_ms;  // from the first trial's start
    std::optional<int> parallel;          // none: as many as the agents have slots
    int gpus_per_trial = 0;
    int cpus_per_trial = 0;  // 0: trials share the agent's cores; else each has so many to itself
    std::optional<CostBudget> cost = {};
    std::optional<NoProgressBudget> no_progress = {};
    /// The study ends once a trial is at least as good in every objective; one number each, or
    /// none.
    std::vector<double> target = {};

    [[nodiscard]] bool operator==(const BudgetConfig&) const = default;
};

/// Processes of one trial at most.
inline constexpr int kProcessesMax = 4096;

/// What each process of a trial has to itself, and of how many processes a trial consists.
struct ResourcesConfig {
    int cpus = 0;                       // 0: shares the agent's cores
    std::int64_t memory_bytes = 0;      // 0: not counted
    bool learns_memory = false;         // counted as the first trials used
    int gpus = 0;                       // each on a GPU of its own, whole or shared
    std::int64_t gpu_memory_bytes = 0;  // of each GPU; 0: the GPUs are whole
    bool learns_gpu_memory = false;     // whole until the first trials have shown what they use
    std::vector<std::string> labels;    // of the agent, ascending
    int nproc = 1;                      // processes on each machine
    int nnodes = 1;                     // machines
    int processes = 0;                  // > 0: instead, in equal parts on few machines
    int pool = 0;  // > 0: the command is a pool; one process with all of this runs so many trials

    [[nodiscard]] bool operator==(const ResourcesConfig&) const = default;
};

/// Ends of an attempt after which the trial is tried again.
enum class RetryOn { kPreempted, kOom, kFailed, kTimeout };

struct RetryConfig {
    int max = 0;  // further attempts a trial; lost agents and preemptions never count
    std::vector<RetryOn> on;

    [[nodiscard]] bool operator==(const RetryConfig&) const = default;
};

/// A pattern that turns lines of a trial's output into metrics: a regular expression in RE2's
/// syntax with at least one group, or the plain name of a metric. What the groups mean is the
/// agent's rule (worker/agent/output/metric_lines.h).
struct ScrapeConfig {
    std::string name;
    std::string pattern;

    [[nodiscard]] bool operator==(const ScrapeConfig&) const = default;
};

/// A trial of an earlier study, for a warm start.
struct EarlierTrial {
    std::string params_json;               // {"name": value}
    double value = 0;                      // of the first objective
    std::vector<double> more_values = {};  // of the others

    [[nodiscard]] bool operator==(const EarlierTrial&) const = default;
};

/// Trials of a warm start at most.
inline constexpr int kWarmStartMax = 1000;

/// What a new study takes from an earlier one.
struct WarmStartConfig {
    std::string from;                  // a study of the same server; empty: `trials` are given
    int top = 10;                      // so many of the best points are the first trials
    int history = 0;                   // so many of its trials the sampler starts with
    std::vector<EarlierTrial> trials;  // best first; filled in from `from` when the study is made
    std::vector<std::string> notes;    // what did not fit, sentence by sentence

    [[nodiscard]] bool operator==(const WarmStartConfig&) const = default;
};

/// More than one, for a single trial may have met a passing fault.
inline constexpr std::uint64_t kStopAfterFailures = 3;

/// A study's priority lies within -kPriorityMax..kPriorityMax.
inline constexpr int kPriorityMax = 1000;

struct StudyConfig {
    std::string study;                 // empty: the caller names it
    std::vector<std::string> command;  // argv with placeholders; empty: trials are asked over REST
    MetricConfig metric;
    std::vector<MetricConfig> more_metrics;  // the objectives after the first, if there are several
    std::vector<ConstraintConfig> constraints;
    Space space;
    SamplerConfig sampler;
    PrunerConfig pruner;
    BudgetConfig budget;
    ResourcesConfig resources = {};
    RetryConfig retry;
    /// Higher ones come first, and take places from lower ones; nothing: 0.
    std::optional<int> priority = {};
    /// So many failures alike in a row stop the study while no trial has succeeded; 0: none do.
    std::uint64_t stop_after_failures = kStopAfterFailures;
    std::vector<ScrapeConfig> scrape;
    std::vector<LogRule> log_rules = {};
    CheckpointPolicy checkpoints = {};
    std::int64_t grace_ms = 30'000;          // between SIGTERM and SIGKILL
    std::optional<std::int64_t> timeout_ms;  // longest time of one attempt
    std::map<std::string, std::string> env;
    std::string working_dir;  // empty: where the agent stands
    std::optional<WarmStartConfig> warm_start = {};
    std::string register_as = {};  // registered model that gets the best trial's model; empty: none

    [[nodiscard]] bool operator==(const StudyConfig&) const = default;
};

/// Where a study's description comes from. `inline_parameters` are NAME=SPEC words (inline.h); each
/// adds a parameter to the space of the file or replaces the one of that name.
struct StudySource {
    std::string text;  // empty: no file
    std::string file;  // shown in errors; a name that ends in ".json" is JSON with // comments
    std::vector<std::string> inline_parameters;
};

/// Parses and checks every value; what may still come from flags (study, metric, command) may be
/// missing. Errors: kInvalidParameterValue; message "line 12, column 8: space.lr: ...", context the
/// file.
[[nodiscard]] Result<StudyConfig> read_study(const StudySource& source);

/// From the JSON of the REST API or the journal. Errors as above with the path instead of the line.
[[nodiscard]] Result<StudyConfig> study_config_from_json(const Json& study);

/// The canonical JSON; study_config_from_json reads it back to an equal config. `space` is an
/// object; where the order of declaration is not that of the names, `space_order` lists the names.
[[nodiscard]] Json to_json(const StudyConfig& config);

/// The pieces of a study's JSON, for answers that show only them.
[[nodiscard]] Json to_json(const MetricConfig& metric);
[[nodiscard]] Json to_json(const std::vector<ConstraintConfig>& constraints);
[[nodiscard]] Json to_json(const BudgetConfig& budget);
[[nodiscard]] Json to_json(const ResourcesConfig& resources);
[[nodiscard]] Json to_json(const CheckpointPolicy& policy);
[[nodiscard]] Json to_json(const WarmStartConfig& warm_start);

/// Cores and GPUs of each process: those of `resources`, or of the budget, which had them before.
[[nodiscard]] int cpus_of_process(const StudyConfig& config);
[[nodiscard]] int gpus_of_process(const StudyConfig& config);
/// Processes of a trial, on all machines together.
[[nodiscard]] int processes_of(const ResourcesConfig& resources);

/// The last check, when file and flags are merged: a metric is named, the space is not empty, the
/// command's placeholders are known, limits agree. `needs_command`: trials are run by agents.
[[nodiscard]] Result<void> check_study(const StudyConfig& config, bool needs_command);

/// All objectives, the first one first.
[[nodiscard]] std::vector<MetricConfig> metrics_of(const StudyConfig& config);

/// What samplers make of them.
[[nodiscard]] Objectives objectives_of(const StudyConfig& config);

/// What the sampler makes of the study, as one sentence; empty where its name says it all.
[[nodiscard]] std::string sampler_outlook(const StudyConfig& config);

/// How far each of `values` (one a constraint, in order) lies beyond its bounds; 0: within.
[[nodiscard]] std::vector<double> violations_of(const std::vector<ConstraintConfig>& constraints,
                                                const std::vector<double>& values);

/// As above, summed; 0: feasible.
[[nodiscard]] double violation_of(const std::vector<ConstraintConfig>& constraints,
                                  const std::vector<double>& values);

/// Whether sampler and pruner can do what metrics and constraints ask; part of check_study.
[[nodiscard]] Result<void> check_metrics(const StudyConfig& config);

/// "val_loss:min" or "val_loss" (min), as -m takes it. Sets name and goal; keeps the rest.
[[nodiscard]] Result<void> parse_metric_flag(std::string_view text, MetricConfig& metric);
/// "val_loss:min,latency_ms:min": as above for each objective, which replace those of `config`.
[[nodiscard]] Result<void> parse_metrics_flag(std::string_view text, StudyConfig& config);

[[nodiscard]] std::string_view goal_name(Goal goal);  // "min", "max"
[[nodiscard]] std::string aggregation_name(
    const MetricConfig& metric);                         // "best", "last", "mean_last_5"
[[nodiscard]] std::string_view retry_name(RetryOn end);  // "preempted", "oom", ...

}  // namespace tune::tuner
