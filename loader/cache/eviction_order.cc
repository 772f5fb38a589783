#include "loader/cache/eviction_order.h"

#include <algorithm>

namespace tune::loader {

std::vector<std::size_t> take_wanted(const EvictionView& view,
                                     std::vector<std::size_t>& candidates) {
    const std::size_t last = candidates.empty() ? 0 : *std::ranges::max_element(candidates);
    std::vector<bool> is_sought(last + 1);
    for (const std::size_t shard : candidates) is_sought[shard] = true;
    std::size_t sought = candidates.size();
    std::size_t looks = 0;
    std::vector<std::size_t> soonest_first;
    std::vector<std::int64_t> scratch;
    for (const FollowedPlan& followed : view.plans)
        for (std::size_t batch = view.from > followed.base ? view.from - followed.base : 0;
             batch < followed.plan->batch_count() && sought > 1 && looks < view.looks_max; ++batch)
            for (const std::int64_t id : followed.plan->batch(batch, scratch)) {
                ++looks;
                const std::size_t shard = view.shard_of(id);
                if (shard > last || !is_sought[shard]) continue;
                is_sought[shard] = false;
                --sought;
                soonest_first.push_back(shard);
            }
    std::erase_if(candidates, [&](std::size_t shard) { return !is_sought[shard]; });
    return soonest_first;
}

}  // namespace tune::loader
