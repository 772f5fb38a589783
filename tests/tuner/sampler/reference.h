#pragma once
// What the tests compare against: the Parzen estimator written down once more from the formulas,
// with no care for speed, and small makers of spaces.

#include <memory>
#include <string>
#include <vector>

#include "tuner/sampler/axis.h"
#include "tuner/sampler/sampler.h"

namespace tune::tuner {

/// The space of inline words, "lr=1e-5..1e-1:log".
[[nodiscard]] Space space_of(const std::vector<std::string>& words);

/// The axis of one inline word.
[[nodiscard]] Axis axis_of(const std::string& word);

/// ln p(point) of the mixture over `rows` (positions, in order of age).
[[nodiscard]] double reference_log_density(const std::vector<Axis>& axes,
                                           const std::vector<std::vector<double>>& rows,
                                           const std::vector<double>& point);

/// Bandwidths of one axis, prior excluded.
[[nodiscard]] std::vector<double> reference_bandwidths(const Axis& axis,
                                                       const std::vector<double>& mus);

/// Weights of n observations by age, prior excluded.
[[nodiscard]] std::vector<double> reference_weights(std::size_t count);

}  // namespace tune::tuner
