#include "loader/cache/supply/eviction_order.h"

#include <algorithm>

namespace tune::loader {

std::vector<std::size_t> take_wanted(const EvictionView& view,
                                     std::vector<std::size_t>& candidates) {
    const std::size_t last = candidates.empty() ? 0 : *std::ranges::max_element(candidates);
    std::vector<bool> is_sought(last + 1);
    for (const std::size_t unit : candidates) is_sought[unit] = true;
    std::size_t sought = candidates.size();
    std::size_t looks = 0;
    std::vector<std::size_t> soonest_first;
    std::vector<std::int64_t> scratch;
    for (const FollowedPlan& followed : view.plans)
        for (std::size_t batch = view.from > followed.base ? view.from - followed.base : 0;
             batch < followed.plan->batch_count() && sought > 1 && looks < view.looks_max; ++batch)
            for (const std::int64_t id : followed.plan->batch(batch, scratch))
                for (const std::size_t unit : view.units_of(id)) {
                    ++looks;
                    if (unit > last || !is_sought[unit]) continue;
                    is_sought[unit] = false;
                    --sought;
                    soonest_first.push_back(unit);
                }
    std::erase_if(candidates, [&](std::size_t unit) { return !is_sought[unit]; });
    return soonest_first;
}

}  // namespace tune::loader
