#pragma once
// How population based training changes the parameters of a member that took another's place.
// Private to tuner/sampler (and its tests).

#include <cstdint>
#include <vector>

#include "tuner/sampler/pbt/pbt_options.h"
#include "tuner/sampler/uniform.h"
#include "tuner/space/space.h"

namespace tune::tuner {

/// `value` moved by the factor that `uniform` (in [0, 1)) picks: numbers are multiplied, or moved
/// by the factor's excess over 1 of the range where that reaches below zero; a grid's go at least
/// one step; ordinals go to a neighbour, down in the lower half of `uniform`; choices have no
/// neighbours and stay. Never leaves the bounds.
[[nodiscard]] double perturbed(const Parameter& parameter, double value,
                               const std::vector<double>& factors, double uniform);

/// The parent's point, each of its parameters drawn anew with the resample probability and else
/// perturbed. Inactive where the parent's is.
[[nodiscard]] Point explored(const Space& space, const Point& parent, const PbtOptions& options,
                             UniformSource& source, std::uint64_t trial);

}  // namespace tune::tuner
