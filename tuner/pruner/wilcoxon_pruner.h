#pragma once
// The paired test against the best trial. Private to tuner/pruner; see pruner.h.

#include <cstdint>
#include <unordered_map>

#include "tuner/pruner/pruner_kind.h"
#include "tuner/pruner/reports.h"

namespace tune::tuner {

struct WilcoxonOptions {
    double p = 0.1;         // pruned when "no worse than the best trial" is less probable
    int startup_steps = 2;  // steps shared with the best trial before anything is pruned

    [[nodiscard]] bool operator==(const WilcoxonOptions&) const = default;
};

class WilcoxonPruner final : public Pruner {
public:
    WilcoxonPruner(const WilcoxonOptions& options, Goal goal)
        : options_(options), sign_(goal == Goal::kMinimize ? 1 : -1) {}

    void note(std::uint64_t number, std::int64_t step, double value) override;
    [[nodiscard]] bool should_prune(std::uint64_t number) override;
    void finish(std::uint64_t number, End end, double value) override;

private:
    WilcoxonOptions options_;
    double sign_;
    std::unordered_map<std::uint64_t, Reports> reports_;  // of trials that run; lower is better
    bool has_best_ = false;
    std::uint64_t best_number_ = 0;
    double best_value_ = 0;
    Reports best_reports_;
};

/// "wilcoxon" in a study.
[[nodiscard]] const PrunerKind& wilcoxon_pruner();

}  // namespace tune::tuner
