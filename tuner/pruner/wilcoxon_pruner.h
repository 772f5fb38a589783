#pragma once
// The paired test against the best trial. Private to tuner/pruner; see pruner.h.

#include <cstdint>
#include <unordered_map>

#include "tuner/pruner/pruner.h"
#include "tuner/pruner/reports.h"

namespace tune::tuner {

class WilcoxonPruner final : public Pruner {
public:
    WilcoxonPruner(const PrunerConfig& config, Goal goal)
        : config_(config), sign_(goal == Goal::kMinimize ? 1 : -1) {}

    void note(std::uint64_t number, std::int64_t step, double value) override;
    [[nodiscard]] Verdict judge(std::uint64_t number) override;
    void finish(std::uint64_t number, End end, double value) override;

private:
    PrunerConfig config_;
    double sign_;
    std::unordered_map<std::uint64_t, Reports> reports_;  // of trials that run; lower is better
    bool has_best_ = false;
    std::uint64_t best_number_ = 0;
    double best_value_ = 0;
    Reports best_reports_;
};

}  // namespace tune::tuner
