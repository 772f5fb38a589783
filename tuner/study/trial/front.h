#pragma once
// The best trials of a study: one where there is one objective, the Pareto front where there are
// several. Pure.
//
// Invariants: the front holds complete feasible trials, none of which dominates another, sorted by
// number; of equals with one objective it holds the earliest, whatever order they ended in.

#include <cstdint>
#include <vector>

#include "tuner/config/study_config.h"
#include "tuner/study/trial/trial_table.h"

namespace tune::tuner {

/// Not thread-safe: part of a Study. `config` and `trials` outlive it.
class Front {
public:
    Front(const StudyConfig& config, const TrialTable& trials) : config_(config), trials_(trials) {}

    /// A trial of the table that has ended. Cost: O(front).
    void consider(const Trial& trial);

    /// The complete feasible trial with the best value, the earliest of equals; nullptr if there is
    /// none, and for a study with several objectives.
    [[nodiscard]] const Trial* best() const;
    /// The complete feasible trials that no other one dominates, by number: best() where there is
    /// one objective.
    [[nodiscard]] std::vector<const Trial*> trials() const;
    [[nodiscard]] bool empty() const { return numbers_.empty(); }
    /// Grows when trials() changes.
    [[nodiscard]] std::uint64_t version() const { return version_; }

private:
    const StudyConfig& config_;
    const TrialTable& trials_;
    std::vector<std::uint64_t> numbers_;
    std::uint64_t version_ = 0;
};

}  // namespace tune::tuner
