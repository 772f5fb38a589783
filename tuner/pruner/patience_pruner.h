#pragma once
// No improvement for a while. Private to tuner/pruner; see pruner.h.

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "tuner/pruner/pruner_kind.h"
#include "tuner/pruner/reports.h"

namespace tune::tuner {

struct PatienceOptions {
    int wait = 0;  // reports without improvement
    double min_delta = 0;
    std::vector<PrunerConfig> of = {};  // at most one: decides once patience has run out

    [[nodiscard]] bool operator==(const PatienceOptions&) const = default;
};

class PatiencePruner final : public Pruner {
public:
    /// `inner`: decides once patience has run out; null: that is the decision.
    PatiencePruner(const PatienceOptions& options, Goal goal, std::unique_ptr<Pruner> inner)
        : wait_(options.wait),
          min_delta_(options.min_delta),
          sign_(goal == Goal::kMinimize ? 1 : -1),
          inner_(std::move(inner)) {}

    void note(std::uint64_t number, std::int64_t step, double value) override;
    [[nodiscard]] bool should_prune(std::uint64_t number) override;
    void finish(std::uint64_t number, End end, double value) override;

private:
    int wait_;
    double min_delta_;
    double sign_;
    std::unique_ptr<Pruner> inner_;                       // may be null
    std::unordered_map<std::uint64_t, Reports> reports_;  // of trials that run; lower is better
};

/// "patience" in a study.
[[nodiscard]] const PrunerKind& patience_pruner();

}  // namespace tune::tuner
