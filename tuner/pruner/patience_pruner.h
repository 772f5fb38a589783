#pragma once
// No improvement for a while. Private to tuner/pruner; see pruner.h.

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "tuner/pruner/pruner.h"
#include "tuner/pruner/reports.h"

namespace tune::tuner {

class PatiencePruner final : public Pruner {
public:
    /// `inner`: decides once patience has run out; null: that is the decision.
    PatiencePruner(const PrunerConfig& config, Goal goal, std::unique_ptr<Pruner> inner)
        : config_(config), sign_(goal == Goal::kMinimize ? 1 : -1), inner_(std::move(inner)) {}

    void note(std::uint64_t number, std::int64_t step, double value) override;
    [[nodiscard]] Verdict judge(std::uint64_t number) override;
    void finish(std::uint64_t number, End end, double value) override;

private:
    PrunerConfig config_;
    double sign_;
    std::unique_ptr<Pruner> inner_;                       // may be null
    std::unordered_map<std::uint64_t, Reports> reports_;  // of trials that run; lower is better
};

}  // namespace tune::tuner
