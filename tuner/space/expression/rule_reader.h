#pragma once
// The keys `forbid`, `derive` and `initial` of a study. Private to tuner/space.

#include <vector>

#include "base/result.h"
#include "tuner/space/node.h"
#include "tuner/space/space.h"

namespace tune::tuner {

/// Most points of `initial`.
inline constexpr std::size_t kInitialPointsMax = 1000;

/// The nodes of a study that say more about its space; null: not given.
struct RuleNodes {
    const Node* forbid = nullptr;
    const Node* derive = nullptr;
    const Node* initial = nullptr;
};

/// `space` with these rules. Refuses rules that no point obeys, and initial points that cannot be
/// run. Cost: a search for an allowed point (feasible_point.h), some 10 ms at worst.
[[nodiscard]] Result<Space> with_rules(const Space& space, const RuleNodes& nodes);

}  // namespace tune::tuner
