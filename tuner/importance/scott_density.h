#pragma once
// Densities over the cells of one parameter, as PED-ANOVA compares them.

#include <cstdint>
#include <span>
#include <vector>

namespace tune::tuner {

/// The probability of each of `counts.size()` cells, estimated from how many trials lie in each.
/// Ordered cells: a mixture of discretised normal distributions, one a filled cell, with Scott's
/// bandwidth; unordered cells: smoothed frequencies; both with a uniform prior that weighs as one
/// trial. All zero: the prior alone. Cost O(cells^2). Source: optuna 5.0.0
/// importance/_ped_anova/scott_parzen_estimator.py.
[[nodiscard]] std::vector<double> scott_density(std::span<const std::uint32_t> counts,
                                                bool is_ordered);

}  // namespace tune::tuner
