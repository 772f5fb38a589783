#pragma once
// Percentile pruning against all trials. Private to tuner/pruner; see pruner.h.

#include <cstdint>
#include <unordered_map>

#include "tuner/pruner/pruner.h"
#include "tuner/pruner/reports.h"

namespace tune::tuner {

class RunningPercentilePruner final : public Pruner {
public:
    RunningPercentilePruner(const PrunerConfig& config, Goal goal)
        : config_(config), sign_(goal == Goal::kMinimize ? 1 : -1) {}

    void note(std::uint64_t number, std::int64_t step, double value) override;
    [[nodiscard]] Verdict judge(std::uint64_t number) override;
    void finish(std::uint64_t number, End end, double value) override;

private:
    struct Trial {
        Reports reports;
        bool has_ended = false;
    };

    void remove_values(const Trial& trial);

    PrunerConfig config_;
    double sign_;
    std::unordered_map<std::uint64_t, Trial> trials_;
    std::unordered_map<std::int64_t, SortedValues> steps_;  // lower is better
};

}  // namespace tune::tuner
