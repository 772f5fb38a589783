// The bytes' side of the supply. Each thread does the most urgent of: samples of the first batches
// by themselves, units that may be in the cache, units that another process was fetching, units to
// fetch. A claim is asked for without waiting; when another process holds it, a thread of its own
// waits in the kernel for that, and the others go on.

#include "base/system/thread.h"
#include "loader/cache/supply/unit_supply.h"

namespace tune::loader {

void UnitSupply::work() {
    name_thread("tune-fetch");
    std::unique_lock lock(mutex_);
    while (!is_stopping_)
        if (!work_once(lock)) work_.wait(lock);
}

/// Does one thing; false when there is nothing to do.
bool UnitSupply::work_once(Lock& lock) {
    if (const std::optional<std::uint64_t> batch = take_range()) {
        range(*batch, lock);
        return true;
    }
    if (const std::optional<std::size_t> unit = stages_.take_queued()) {
        look(*unit, lock);
        return true;
    }
    if (!claimed_.empty()) {
        const std::size_t unit = claimed_.front();
        claimed_.pop_front();
        fetch(unit, lock);
        return true;
    }
    if (holds_downloads_) return false;
    const std::optional<std::size_t> unit = stages_.take_absent();
    if (!unit) return false;
    if (fetcher_->try_claim(*unit))
        fetch(*unit, lock);
    else
        waiters_->wait_for(*unit);
    return true;
}

/// Looks for the unit in the cache.
void UnitSupply::look(std::size_t unit, Lock& lock) {
    lock.unlock();
    Found found = fetcher_->look(unit);
    lock.lock();
    if (!found || found->where == UnitFetcher::Where::kCache)
        return settle(unit, std::move(found), lock);
    stages_.set_absent(unit);
    tell(lock);  // a batch that waits for this one may now be read sample by sample
}

/// REQUIRES: the unit is claimed.
void UnitSupply::fetch(std::size_t unit, Lock& lock) {
    lock.unlock();
    UnitFetcher::Advice advice;
    advice.victims = [this](const SupplyPart& part) { return victims(part); };
    // Without room raw shards are read sample by sample where they are needed; others come as soon
    // as a batch waits for them.
    advice.is_awaited = [this, unit] {
        const std::lock_guard guard(mutex_);
        return !can_range_ && stages_.first_batch(unit) < next_batch_;
    };
    Found found = fetcher_->fetch(unit, advice);
    lock.lock();
    settle(unit, std::move(found), lock);
}

/// What came of looking for a unit or fetching it.
void UnitSupply::settle(std::size_t unit, Found found, Lock& lock) {
    if (!found) {
        fetcher_->store().fail(unit, found.error());
        holds_downloads_ = false;  // the first batch will not come, and must say so
        stages_.settle(unit, Stage::kFailed);
    } else if (found->where == UnitFetcher::Where::kNoRoom) {
        stages_.settle(unit, Stage::kNoRoom);
        if (!can_range_) retry_without_room(next_batch_);  // a batch waits for it since
    } else {
        const bool is_kept = found->where == UnitFetcher::Where::kCache;
        stages_.settle(unit, is_kept ? Stage::kReady : Stage::kInMemory);
        // Only now, so that nothing can come between this and what reads samples one by one.
        found->put(is_kept);
    }
    if (ranges_ && stages_.stage(unit) != Stage::kNoRoom) ranges_->drop(unit);
    tell(lock);
}

/// Whether the batch waits for nothing but units that are far away.
bool UnitSupply::can_range(std::uint64_t batch) const {
    if (walked_ <= batch || ranged_.contains(batch)) return false;
    const auto lacking = lacking_.find(batch);
    if (lacking == lacking_.end()) return false;
    bool is_any = false;
    for (const std::uint32_t unit : lacking->second) {
        switch (stages_.stage(unit)) {
            case Stage::kReady:
            case Stage::kInMemory: break;
            case Stage::kNoRoom: is_any = true; break;
            case Stage::kAbsent:
            case Stage::kBusy:
                if (is_warm_) return false;
                is_any = true;
                break;
            default: return false;  // it is being looked for, or failed
        }
    }
    return is_any;
}

std::optional<std::uint64_t> UnitSupply::take_range() const {
    if (!can_range_ || is_ranging_ || (is_warm_ && stages_.pending() == 0)) return {};
    for (const std::uint64_t batch : open_)
        if (can_range(batch)) return batch;
    return {};
}

/// Reads the samples of one batch. One batch at a time: a later one may want the same samples.
void UnitSupply::range(std::uint64_t batch, Lock& lock) {
    is_ranging_ = true;
    BatchNeeds::ByGroup samples = needs_.samples_by_group(batch);
    std::erase_if(samples, [this](const auto& of_unit) { return stages_.is_here(of_unit.first); });
    Result<std::vector<SampleRanges::Need>> prepared = ranges_->prepare(samples);
    lock.unlock();
    Result<std::uint64_t> fetched = prepared ? ranges_->fetch(*prepared, fetcher_->reader())
                                             : Result<std::uint64_t>(std::move(prepared).error());
    lock.lock();
    is_ranging_ = false;
    holds_downloads_ = false;
    if (fetched) {
        stats_.bytes += *fetched;
        ++stats_.ranged_batches;
        for (const SampleRanges::Need& need : *prepared)
            if (!stages_.is_here(need.shard)) ranges_->put(need);
        if (open_.contains(batch)) ranged_.insert(batch);
    } else {
        // Whatever the reason, the units themselves come to the same end, and say so.
        can_range_ = false;
        for (const auto& [shard, wanted] : samples) ranges_->drop(shard);
        retry_without_room(needs_.end());
    }
    tell(lock);
}

}  // namespace tune::loader
