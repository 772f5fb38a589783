#pragma once
// Fixed bounds. Private to tuner/pruner; see pruner.h.

#include <cstdint>
#include <unordered_map>

#include "tuner/pruner/pruner.h"
#include "tuner/pruner/reports.h"

namespace tune::tuner {

class ThresholdPruner final : public Pruner {
public:
    explicit ThresholdPruner(const PrunerConfig& config) : config_(config) {}

    void note(std::uint64_t number, std::int64_t step, double value) override;
    [[nodiscard]] Verdict judge(std::uint64_t number) override;
    void finish(std::uint64_t number, End end, double value) override;

private:
    PrunerConfig config_;
    std::unordered_map<std::uint64_t, Reports> reports_;  // of trials that run
};

}  // namespace tune::tuner
