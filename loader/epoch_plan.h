#pragma once
// The batches of one rank for what is left of an epoch. Internal to the loader.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "loader/order/lazy_order.h"

namespace tune::loader {

/// A place between two samples.
struct Position {
    std::int64_t epoch = 0;
    std::int64_t sample_in_epoch = 0;
};

/// Immutable, so that threads share it without a lock.
class EpochPlan {
public:
    /// `ids`: of the rank, -1 for gaps; cut into batches of `batch_size`, gaps taken out, empty
    /// batches left out. Memory: 8 bytes a sample.
    EpochPlan(std::int64_t epoch, std::vector<std::int64_t> ids, std::int64_t batch_size,
              bool drop_last);
    /// Batches are worked out when they are asked for. Memory: O(1).
    EpochPlan(std::int64_t epoch, LazyRank lazy, std::int64_t batch_size, bool drop_last);

    [[nodiscard]] std::int64_t epoch() const { return epoch_; }
    [[nodiscard]] std::size_t batch_count() const { return batch_count_; }
    /// The ids of a batch. They lie in the plan, or in `scratch`, which is overwritten.
    [[nodiscard]] std::span<const std::int64_t> batch(std::size_t number,
                                                      std::vector<std::int64_t>& scratch) const;
    /// The samples of a batch and of all that follow it, one by one.
    class Rest {
    public:
        Rest() = default;
        [[nodiscard]] std::size_t size() const { return size_; }
        /// REQUIRES: i < size(). O(1); about 100 ns where batches are worked out.
        [[nodiscard]] std::int64_t operator[](std::size_t i) const {
            return plan_->lazy_ ? plan_->lazy_->at(static_cast<std::int64_t>(first_ + i))
                                : plan_->ids_[first_ + i];
        }

    private:
        friend class EpochPlan;
        Rest(const EpochPlan* plan, std::size_t first, std::size_t size)
            : plan_(plan), first_(first), size_(size) {}
        const EpochPlan* plan_ = nullptr;
        std::size_t first_ = 0;
        std::size_t size_ = 0;
    };
    /// Valid as long as the plan.
    [[nodiscard]] Rest from(std::size_t number) const;

private:
    std::int64_t epoch_;
    std::size_t batch_count_ = 0;
    std::vector<std::int64_t> ids_;
    std::vector<std::size_t> ends_;
    std::optional<LazyRank> lazy_;
    std::int64_t batch_size_ = 1;  // of lazy_
};

/// Makes the plan of what follows a position. Called on any thread, one call at a time.
using Planner = std::function<Result<std::shared_ptr<const EpochPlan>>(Position)>;

}  // namespace tune::loader
