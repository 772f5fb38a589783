#pragma once
// Fixed bounds. Private to tuner/pruner; see pruner.h.

#include <cstdint>
#include <unordered_map>

#include "tuner/pruner/pruner_kind.h"
#include "tuner/pruner/reports.h"

namespace tune::tuner {

/// Values outside the bounds are pruned; at least one bound is given.
struct ThresholdOptions {
    std::optional<double> lower = {};
    std::optional<double> upper = {};
    std::int64_t warmup = 0;    // no trial is pruned at a step below this
    std::int64_t interval = 1;  // steps between two checks

    [[nodiscard]] bool operator==(const ThresholdOptions&) const = default;
};

class ThresholdPruner final : public Pruner {
public:
    explicit ThresholdPruner(const ThresholdOptions& options) : options_(options) {}

    void note(std::uint64_t number, std::int64_t step, double value) override;
    [[nodiscard]] bool should_prune(std::uint64_t number) override;
    void finish(std::uint64_t number, End end, double value) override;

private:
    ThresholdOptions options_;
    std::unordered_map<std::uint64_t, Reports> reports_;  // of trials that run
};

/// "threshold" in a study.
[[nodiscard]] const PrunerKind& threshold_pruner();

}  // namespace tune::tuner
