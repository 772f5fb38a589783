#pragma once
// What the batches of the plans that are followed need. Internal to the loader.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "loader/cache/supply/eviction_order.h"
#include "loader/cache/unit.h"

namespace tune::loader {

/// Batches are numbered through all plans. Not thread-safe, but for needs().
class BatchNeeds {
public:
    explicit BatchNeeds(UnitNeeds needs) : needs_(std::move(needs)) {}

    /// `plan` comes next; the number of its first batch.
    [[nodiscard]] std::uint64_t follow(std::shared_ptr<const EpochPlan> plan);
    /// Lets go of plans that end before this batch.
    void drop_before(std::uint64_t batch);
    /// Of all plans; numbers go on from end().
    void forget() { plans_.clear(); }

    /// The number after the last batch.
    [[nodiscard]] std::uint64_t end() const { return end_; }
    /// Whether a plan has the batch.
    [[nodiscard]] bool has(std::uint64_t batch) const { return plan_of(batch) != nullptr; }
    [[nodiscard]] std::span<const FollowedPlan> plans() const { return plans_; }

    /// The samples of a batch, in the plan or in `scratch`; none when no plan has it.
    [[nodiscard]] std::span<const std::int64_t> samples(std::uint64_t batch,
                                                        std::vector<std::int64_t>& scratch) const;
    /// A batch's units, each once, ascending. `sample_count`: of the batch.
    [[nodiscard]] std::vector<std::uint32_t> units(std::uint64_t batch,
                                                   std::size_t& sample_count) const;
    /// A batch's samples by group, as numbers within it.
    using ByGroup = std::map<std::size_t, std::vector<std::uint32_t>>;
    [[nodiscard]] ByGroup samples_by_group(std::uint64_t batch) const;

    [[nodiscard]] const UnitNeeds& needs() const { return needs_; }

private:
    [[nodiscard]] const FollowedPlan* plan_of(std::uint64_t batch) const;

    const UnitNeeds needs_;
    std::vector<FollowedPlan> plans_;
    std::uint64_t end_ = 0;
};

}  // namespace tune::loader
