#pragma once
// How a space is sampled: in which order, and which parameters jointly. Private to tuner/sampler.

#include <cstddef>
#include <vector>

#include "tuner/space/space.h"

namespace tune::tuner {

/// Parameters that always appear together, because they stand under the same conditions; or one
/// parameter with a single value, which needs no sampling.
struct Group {
    bool is_fixed = false;             // its one member has one value
    std::vector<std::size_t> members;  // in order of name
};

/// Groups such that every condition's parent is in an earlier group.
[[nodiscard]] std::vector<Group> groups_of(const Space& space);

/// The same parameters, each in a group of its own.
[[nodiscard]] std::vector<Group> one_by_one(const std::vector<Group>& groups);

}  // namespace tune::tuner
