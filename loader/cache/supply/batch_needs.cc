#include "loader/cache/supply/batch_needs.h"

#include <algorithm>

namespace tune::loader {

std::uint64_t BatchNeeds::follow(std::shared_ptr<const EpochPlan> plan) {
    const std::uint64_t base = end_;
    end_ += plan->batch_count();
    plans_.push_back({std::move(plan), base});
    return base;
}

void BatchNeeds::drop_before(std::uint64_t batch) {
    std::erase_if(plans_, [batch](const FollowedPlan& old) {
        return old.base + old.plan->batch_count() <= batch;
    });
}

const FollowedPlan* BatchNeeds::plan_of(std::uint64_t batch) const {
    for (const FollowedPlan& plan : plans_)
        if (batch >= plan.base && batch < plan.base + plan.plan->batch_count()) return &plan;
    return nullptr;
}

std::span<const std::int64_t> BatchNeeds::samples(std::uint64_t batch,
                                                  std::vector<std::int64_t>& scratch) const {
    const FollowedPlan* const plan = plan_of(batch);
    if (!plan) return {};
    return plan->plan->batch(batch - plan->base, scratch);
}

std::vector<std::uint32_t> BatchNeeds::units(std::uint64_t batch, std::size_t& sample_count) const {
    std::vector<std::int64_t> scratch;
    const std::span<const std::int64_t> ids = samples(batch, scratch);
    sample_count = ids.size();
    // Many samples of a batch lie in few groups.
    std::vector<std::size_t> groups;
    for (const std::int64_t id : ids) groups.push_back(needs_.find(id).shard);
    std::ranges::sort(groups);
    groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
    std::vector<std::uint32_t> units;
    for (const std::size_t group : groups) {
        const std::span<const std::uint32_t> of_group = needs_.of_group(group);
        units.insert(units.end(), of_group.begin(), of_group.end());
    }
    std::ranges::sort(units);
    units.erase(std::unique(units.begin(), units.end()), units.end());
    return units;
}

BatchNeeds::ByGroup BatchNeeds::samples_by_group(std::uint64_t batch) const {
    ByGroup groups;
    std::vector<std::int64_t> scratch;
    for (const std::int64_t id : samples(batch, scratch)) {
        const ShardMap::Place place = needs_.find(id);
        groups[place.shard].push_back(static_cast<std::uint32_t>(place.sample));
    }
    return groups;
}

}  // namespace tune::loader
