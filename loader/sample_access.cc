#include "loader/sample_access.h"

#include <utility>

#include "loader/epoch_plan.h"

namespace tune::loader {

void SampleAccess::expect(std::vector<std::int64_t> ids) {
    if (!supply_) return;
    const std::lock_guard lock(mutex_);
    expected_ = std::move(ids);
    next_ = 0;
    follow_expected();
}

/// Each sample is a batch of its own, so that the look-ahead knows how far the reader has come.
void SampleAccess::follow_expected() {
    supply_->forget();
    first_ = next_;
    std::vector<std::int64_t> rest(expected_.begin() + static_cast<std::ptrdiff_t>(next_),
                                   expected_.end());
    base_ = supply_->follow(std::make_shared<const EpochPlan>(0, std::move(rest), 1, false));
    is_following_ = true;
}

/// The supply's number for what is read now.
std::uint64_t SampleAccess::begin(std::span<const std::int64_t> ids) {
    const bool is_next = ids.size() == 1 && next_ < expected_.size() && expected_[next_] == ids[0];
    if (is_next) {
        if (!is_following_) follow_expected();
        return base_ + (next_++ - first_);
    }
    is_following_ = false;
    supply_->forget();
    return supply_->follow(
        std::make_shared<const EpochPlan>(0, std::vector<std::int64_t>(ids.begin(), ids.end()),
                                          static_cast<std::int64_t>(ids.size()), false));
}

Result<void> SampleAccess::read(std::span<const std::int64_t> ids, BatchSlot& slot) {
    if (!supply_ || ids.empty()) return decoder_.fill(ids, slot);
    const std::lock_guard lock(mutex_);
    const std::uint64_t batch = begin(ids);
    supply_->expect(batch);
    supply_->wait(batch);
    Result<void> filled = decoder_.fill(ids, slot);
    supply_->end(batch);
    return filled;
}

}  // namespace tune::loader
