#pragma once
// The rules of c-TPE (Watanabe, Hutter 2023, arXiv:2211.14411) as plain functions. Private to
// tuner/sampler (and its tests).

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tune::tuner {

/// A complete trial as the split sees it; smaller losses are better.
struct ConstrainedLoss {
    double loss = 0;
    bool is_feasible = false;
    std::uint64_t number = 0;
};

/// Numbers of the trials that are good in the objective: in order of loss, as many as it takes to
/// have `count` feasible ones among them; all where there are not so many feasible ones.
/// O(n log n).
[[nodiscard]] std::vector<std::uint64_t> constrained_good(std::vector<ConstrainedLoss> trials,
                                                          std::size_t count);

/// Which trials count as satisfying a constraint, given how far each is beyond its bound: those
/// that are within it; if there is none, the first of those that are least beyond.
[[nodiscard]] std::vector<bool> satisfied(std::span<const double> violations);

/// One term of the acquisition function, -ln(q + (1 - q) g / l): `share` q of the trials are good,
/// and the logarithms of their density l and that of the others, g. O(1).
[[nodiscard]] double constrained_term(double share, double log_good, double log_bad);

}  // namespace tune::tuner
