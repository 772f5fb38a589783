#pragma once
// Median and percentile pruning. Private to tuner/pruner; see pruner.h.

#include <cstdint>
#include <unordered_map>

#include "tuner/pruner/pruner_kind.h"
#include "tuner/pruner/reports.h"

namespace tune::tuner {

struct PercentileOptions {
    double percentile = 50;     // the share of trials kept, 0..100
    int startup = 5;            // complete trials before anything is pruned
    std::int64_t warmup = 0;    // no trial is pruned at a step below this
    std::int64_t interval = 1;  // steps between two checks
    int min_trials = 1;         // values at a step below which nothing is pruned there

    [[nodiscard]] bool operator==(const PercentileOptions&) const = default;
};

class PercentilePruner final : public Pruner {
public:
    PercentilePruner(const PercentileOptions& options, Goal goal);

    void note(std::uint64_t number, std::int64_t step, double value) override;
    [[nodiscard]] bool should_prune(std::uint64_t number) override;
    void finish(std::uint64_t number, End end, double value) override;

private:
    struct Trial {
        Reports reports;
        double best = 0;  // lower is better; NaN: nothing but NaN so far
        bool has_ended = false;
    };

    /// What complete trials reported at one step.
    struct AtStep {
        SortedValues values;    // lower is better
        std::size_t count = 0;  // with NaN
    };

    PercentileOptions options_;
    double sign_;
    std::size_t complete_ = 0;
    std::unordered_map<std::uint64_t, Trial> trials_;
    std::unordered_map<std::int64_t, AtStep> steps_;
};

/// "median" and "percentile" in a study.
[[nodiscard]] const PrunerKind& median_pruner();
[[nodiscard]] const PrunerKind& percentile_pruner();

}  // namespace tune::tuner
