#pragma once
// Which trials are good: the single-objective split of Optuna 5.0.0, kept as trials come and go.
// Private to tuner/sampler.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tuner/sampler/sampler.h"

namespace tune::tuner {

/// Order among finished trials: complete ones by value, then pruned ones, the longest-lived first,
/// those that never reported last, then infeasible ones by how far they are off; ties by number.
/// Values are negated when the goal is to maximise.
struct Rank {
    int tier = 0;  // 0 complete, 1 pruned with a report, 2 pruned without, 3 infeasible
    double first = 0;
    double second = 0;
    std::uint64_t number = 0;

    [[nodiscard]] auto operator<=>(const Rank&) const = default;
};

/// The rank of a finished observation; `state` must be kComplete or kPruned.
[[nodiscard]] Rank rank_of(const Observation& observation, Goal goal);

/// The number of good ones among `finished` trials: min(ceil(0.1 n), 25).
[[nodiscard]] std::size_t good_count(std::size_t finished);

/// Hyperopt's number of them, and c-TPE's of feasible ones: min(ceil(sqrt(n) / 4), 25).
[[nodiscard]] std::size_t root_good_count(std::size_t finished);

/// Finished trials in order of rank.
class Ranking {
public:
    /// O(log n + moves of 32 bytes).
    void insert(const Rank& rank);
    void erase(const Rank& rank);

    [[nodiscard]] std::size_t size() const { return ranks_.size(); }

    /// The numbers of the good trials, best first.
    [[nodiscard]] std::vector<std::uint64_t> good() const;

private:
    std::vector<Rank> ranks_;
};

}  // namespace tune::tuner
