#pragma once
// Median and percentile pruning. Private to tuner/pruner; see pruner.h.

#include <cstdint>
#include <unordered_map>

#include "tuner/pruner/pruner.h"
#include "tuner/pruner/reports.h"

namespace tune::tuner {

class PercentilePruner final : public Pruner {
public:
    /// `percentile`: the share of trials that is kept, 50 for the median.
    PercentilePruner(const PrunerConfig& config, double percentile, Goal goal);

    void note(std::uint64_t number, std::int64_t step, double value) override;
    [[nodiscard]] Verdict judge(std::uint64_t number) override;
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

    PrunerConfig config_;
    double percentile_;
    double sign_;
    std::size_t complete_ = 0;
    std::unordered_map<std::uint64_t, Trial> trials_;
    std::unordered_map<std::int64_t, AtStep> steps_;
};

}  // namespace tune::tuner
