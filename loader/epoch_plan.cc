#include "loader/epoch_plan.h"

#include <algorithm>
#include <utility>

namespace tune::loader {

EpochPlan::EpochPlan(std::int64_t epoch, std::vector<std::int64_t> ids, std::int64_t batch_size,
                     bool drop_last)
    : epoch_(epoch), ids_(std::move(ids)) {
    const auto size = static_cast<std::size_t>(batch_size);
    const bool has_gaps = std::ranges::any_of(ids_, [](std::int64_t id) { return id < 0; });
    std::size_t kept = 0;
    for (std::size_t begin = 0; begin < ids_.size(); begin += size) {
        const std::size_t kept_before = kept;
        const std::size_t end = begin + std::min(size, ids_.size() - begin);
        if (!has_gaps) kept = end;
        for (std::size_t i = begin; i < end && has_gaps; ++i)
            if (ids_[i] >= 0) ids_[kept++] = ids_[i];
        if (kept > kept_before) ends_.push_back(kept);
    }
    ids_.resize(kept);
    const std::size_t last_begin = ends_.size() > 1 ? ends_[ends_.size() - 2] : 0;
    if (drop_last && !ends_.empty() && ends_.back() - last_begin < size) ends_.pop_back();
    batch_count_ = ends_.size();
}

EpochPlan::EpochPlan(std::int64_t epoch, LazyRank lazy, std::int64_t batch_size, bool drop_last)
    : epoch_(epoch), lazy_(std::move(lazy)), batch_size_(batch_size) {
    const std::int64_t samples = lazy_->sample_count() + (drop_last ? 0 : batch_size - 1);
    batch_count_ = static_cast<std::size_t>(samples / batch_size);
}

std::span<const std::int64_t> EpochPlan::batch(std::size_t number,
                                               std::vector<std::int64_t>& scratch) const {
    if (lazy_) {
        const std::int64_t first = static_cast<std::int64_t>(number) * batch_size_;
        const std::int64_t size = std::min(batch_size_, lazy_->sample_count() - first);
        scratch.resize(static_cast<std::size_t>(size));
        for (std::int64_t i = 0; i < size; ++i)
            scratch[static_cast<std::size_t>(i)] = lazy_->at(first + i);
        return scratch;
    }
    const std::size_t begin = number == 0 ? 0 : ends_[number - 1];
    return std::span(ids_).subspan(begin, ends_[number] - begin);
}

EpochPlan::Rest EpochPlan::from(std::size_t number) const {
    const std::size_t first = lazy_         ? number * static_cast<std::size_t>(batch_size_)
                              : number == 0 ? 0
                                            : ends_[number - 1];
    const std::size_t end = lazy_ ? static_cast<std::size_t>(lazy_->sample_count()) : ids_.size();
    return {this, first, end - std::min(first, end)};
}

}  // namespace tune::loader
