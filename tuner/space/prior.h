#pragma once
// What is believed of a parameter before the first trial: `normal: [mean, deviation]` and
// `lognormal: [median, deviation of the logarithm]` of floats and ints, `weights` of choices.
// Private to tuner/space.

#include <optional>
#include <string>

#include "base/result.h"
#include "tuner/space/node.h"
#include "tuner/space/space.h"
#include "tuner/space/space_check.h"

namespace tune::tuner {

/// Bounds of a `normal` that gives none, in deviations from its centre.
inline constexpr double kPriorBounds = 5;

/// A deviation between these shares of the range is a belief; below, the parameter is a constant,
/// above, it is uniform.
inline constexpr double kSpreadMin = 1e-6;
inline constexpr double kSpreadMax = 10;

/// `normal` or `lognormal` of `spec`, whichever is there; null: neither.
[[nodiscard]] const Entry* prior_entry(const Node& spec);

/// Reads `normal`, `lognormal` and `weights` of a parameter whose kind and bounds are read.
/// `is_short`: the parameter is `{normal: [0, 1], low: -5, high: 5}`, a float whose bounds stand
/// beside it and may be left out.
[[nodiscard]] Result<void> read_prior(const Node& spec, const std::string& path, bool is_short,
                                      Parameter& parameter);

/// Checks the prior of a parameter whose bounds are settled.
[[nodiscard]] std::optional<ParameterError> prior_error(const Parameter& parameter);

}  // namespace tune::tuner
