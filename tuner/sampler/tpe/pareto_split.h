#pragma once
// Which trials are good when there are several objectives: the split of Optuna 5.0.0's TPE (MOTPE).
// Private to tuner/sampler.

#include <cstdint>
#include <map>
#include <vector>

#include "tuner/sampler/nsga/pareto.h"
#include "tuner/sampler/tpe/trial_split.h"

namespace tune::tuner {

/// Finished trials by number. A tenth of them is good: whole ranks of the feasible complete ones
/// while they fit, then those of the next rank that keep most of its dominated volume, then pruned
/// ones, then infeasible ones by how far they are off.
class ParetoSplit {
public:
    explicit ParetoSplit(Objectives objectives) : objectives_(std::move(objectives)) {}

    /// Takes a finished trial; replaces what was known of it. O(log n).
    void insert(const Observation& observation);
    void erase(std::uint64_t number);

    /// The numbers of the good trials, ascending. Kept until a trial changes; O(n * fronts) after
    /// that.
    [[nodiscard]] const std::vector<std::uint64_t>& good();

private:
    struct Finished {
        bool is_ranked = false;  // complete and feasible: `losses` count
        std::vector<double> losses;
        Rank rank;  // among the others
    };
    void choose_ranked(std::vector<std::uint64_t> numbers, const LossTable& losses,
                       std::size_t quota);

    Objectives objectives_;
    std::map<std::uint64_t, Finished> finished_;
    std::vector<std::uint64_t> good_;
    bool is_stale_ = false;
};

}  // namespace tune::tuner
