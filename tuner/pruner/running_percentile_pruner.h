#pragma once
// Percentile pruning against all trials. Private to tuner/pruner; see pruner.h.

#include <cstdint>
#include <unordered_map>

#include "tuner/pruner/pruner_kind.h"
#include "tuner/pruner/reports.h"

namespace tune::tuner {

struct RunningPercentileOptions {
    double percentile = 50;     // the share of trials kept, 0..100
    int min_trials = 5;         // values at a step below which nothing is pruned there
    std::int64_t warmup = 0;    // no trial is pruned at a step below this
    std::int64_t until = 0;     // no trial is pruned above this step; 0: no end
    std::int64_t interval = 1;  // steps between two checks
    int keep_best = 1;          // trials among the best so many at a step are never pruned there

    [[nodiscard]] bool operator==(const RunningPercentileOptions&) const = default;
};

class RunningPercentilePruner final : public Pruner {
public:
    RunningPercentilePruner(const RunningPercentileOptions& options, Goal goal)
        : options_(options), sign_(goal == Goal::kMinimize ? 1 : -1) {}

    void note(std::uint64_t number, std::int64_t step, double value) override;
    [[nodiscard]] bool should_prune(std::uint64_t number) override;
    void finish(std::uint64_t number, End end, double value) override;

private:
    struct Trial {
        Reports reports;
        bool has_ended = false;
    };

    void remove_values(const Trial& trial);

    RunningPercentileOptions options_;
    double sign_;
    std::unordered_map<std::uint64_t, Trial> trials_;
    std::unordered_map<std::int64_t, SortedValues> steps_;  // lower is better
};

/// "running_percentile" in a study.
[[nodiscard]] const PrunerKind& running_percentile_pruner();

}  // namespace tune::tuner
