#pragma once
// Which units a plan wants last. Internal to the loader.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "loader/epoch_plan.h"

namespace tune::loader {

/// A plan, and the number of its first batch among all.
struct FollowedPlan {
    std::shared_ptr<const EpochPlan> plan;
    std::uint64_t base = 0;
};

struct EvictionView {
    std::span<const FollowedPlan> plans;
    /// The first batch whose samples count.
    std::uint64_t from = 0;
    std::function<std::span<const std::uint32_t>(std::int64_t id)> units_of;
    /// Ids that are looked at: what is wanted only after these counts as not wanted.
    std::size_t looks_max = 0;
};

/// Of `candidates`, those that the plans want, soonest first; the others stay in it, in their
/// order. Looks until all but one are found, or looks_max ids were seen. Cost: O(looks).
[[nodiscard]] std::vector<std::size_t> take_wanted(const EvictionView& view,
                                                   std::vector<std::size_t>& candidates);

}  // namespace tune::loader
