// The plan's side of the supply: which batch wants which units, how far ahead to look, and when a
// batch can be read. The other side, unit_supply_work.cc, moves bytes.
//
// A window of batches is open: from the first one that is not ended to the last one walked. Units
// that a batch of the window wants are `wanted`: mapped, pinned against eviction by anybody, or on
// their way. With a cache limit a unit is let go when the window has passed it; what then goes
// first is what the plan wants last (Belady's rule, which needs the future: here it is known).

#include "loader/cache/supply/unit_supply.h"

#include <algorithm>

#include "base/system/thread.h"

namespace tune::loader {
namespace {

/// Without a predownload: units on their way, and batches looked at, at least.
constexpr std::size_t kUnitsAhead = 12;
constexpr std::uint64_t kBatchesAhead = 8;
/// Samples of the plan that are looked at to find a victim: 0.1 s where the order is worked out.
constexpr std::size_t kVictimLooksMax = std::size_t{1} << 20;

}  // namespace

UnitSupply::UnitSupply(std::shared_ptr<UnitFetcher> fetcher, UnitNeeds needs, SupplyOptions options,
                       std::unique_ptr<SampleRanges> ranges)
    : fetcher_(std::move(fetcher)),
      options_(std::move(options)),
      is_rangeable_(ranges && ranges->is_possible()),
      needs_(std::move(needs)),
      stages_(fetcher_->unit_count(), [this](std::size_t unit) { return fetcher_->bytes(unit); }),
      ranges_(std::move(ranges)),
      holds_downloads_(is_rangeable_),
      can_range_(is_rangeable_) {
    waiters_ =
        std::make_unique<ClaimWaiters>([this](std::size_t unit) { fetcher_->wait_claim(unit); },
                                       [this](std::size_t unit) {
                                           const std::lock_guard lock(mutex_);
                                           claimed_.push_back(unit);
                                           ++stats_.waited_shards;
                                           work_.notify_one();
                                       });
    threads_.emplace_back([this] { walk(); });
    for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { work(); });
}

UnitSupply::~UnitSupply() {
    {
        const std::lock_guard lock(mutex_);
        is_stopping_ = true;
    }
    if (options_.stop) options_.stop->set();
    fetcher_->reader().stop();
    walking_.notify_all();
    work_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    waiters_.reset();
    for (std::size_t unit = 0; unit < fetcher_->unit_count(); ++unit)
        if (stages_.stage(unit) == Stage::kReady) {
            fetcher_->store().drop(unit);
            fetcher_->unpin(unit);
        }
}

void UnitSupply::set_listener(std::function<void()> listener) {
    const std::lock_guard lock(listener_mutex_);
    listener_ = std::move(listener);
}

/// Lets everybody know that something came or failed. `lock` is held before and after.
void UnitSupply::tell(Lock& lock) {
    ready_.notify_all();
    work_.notify_all();
    walking_.notify_one();
    lock.unlock();
    {
        const std::lock_guard listening(listener_mutex_);
        if (listener_) listener_();
    }
    lock.lock();
}

std::uint64_t UnitSupply::follow(std::shared_ptr<const EpochPlan> plan) {
    const std::lock_guard lock(mutex_);
    needs_.drop_before(std::min(low(), walked_));
    // Of an epoch in one batch all is needed at once, and for later runs kept.
    if (plan->batch_count() <= 1 && std::exchange(can_range_, false)) {
        holds_downloads_ = false;
        work_.notify_all();
    }
    const std::uint64_t base = needs_.follow(std::move(plan));
    walking_.notify_one();
    return base;
}

void UnitSupply::forget() {
    const std::lock_guard lock(mutex_);
    needs_.forget();
    ranged_.clear();
    // Batches that are still being read stay there; nobody asks for them again.
    lacking_.clear();
    next_batch_ = walked_ = needs_.end();
    is_warm_ = false;
    holds_downloads_ = can_range_ = is_rangeable_;
    for (const std::size_t unit : stages_.outstanding()) release(unit);
    release_used();
}

void UnitSupply::expect(std::uint64_t batch) {
    const std::lock_guard lock(mutex_);
    open_.insert(batch);
    next_batch_ = std::max(next_batch_, batch + 1);
    walking_.notify_one();
    // Those that nobody waited for were left; now somebody does.
    if (!can_range_) retry_without_room(next_batch_);
    if (!is_warm_ || stages_.pending() > 0) work_.notify_one();
}

void UnitSupply::end(std::uint64_t batch) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t before = low();
    open_.erase(batch);
    ranged_.erase(batch);
    lacking_.erase(batch);
    if (low() == before) return;
    release_used();
    walking_.notify_one();
}

bool UnitSupply::is_ready(std::uint64_t batch) {
    const std::lock_guard lock(mutex_);
    return is_there(batch);
}

void UnitSupply::wait(std::uint64_t batch) {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this, batch] { return is_there(batch); });
}

/// REQUIRES: mutex_. What has come of an open batch stays until end(), so only the rest is looked
/// at again.
bool UnitSupply::is_there(std::uint64_t batch) {
    if (ranged_.contains(batch)) return true;
    if (walked_ <= batch) return false;
    if (const auto lacking = lacking_.find(batch); lacking != lacking_.end()) {
        std::vector<std::uint32_t>& units = lacking->second;
        while (!units.empty() && (stages_.pending() == 0 || stages_.has_come(units.back())))
            units.pop_back();
        if (!units.empty()) return false;
    }
    is_warm_ = true;
    if (std::exchange(holds_downloads_, false)) work_.notify_all();
    return true;
}

FetchStats UnitSupply::stats() const {
    const std::lock_guard lock(mutex_);
    FetchStats stats = stats_;
    stats.bytes += fetcher_->fetched_bytes();
    stats.shards = fetcher_->fetched_units();
    return stats;
}

/// The first batch that may still be read.
std::uint64_t UnitSupply::low() const {
    return open_.empty() ? next_batch_ : *open_.begin();
}

bool UnitSupply::can_walk() const {
    if (!needs_.has(walked_)) return false;
    if (walked_ < next_batch_) return true;
    if (options_.window_bytes_max > 0 && stages_.window_bytes() >= options_.window_bytes_max)
        return false;
    const std::uint64_t ahead = walked_ - next_batch_;
    if (options_.predownload > 0)
        return ahead * batch_samples_ < static_cast<std::uint64_t>(options_.predownload);
    return ahead < kBatchesAhead || stages_.pending() < kUnitsAhead;
}

void UnitSupply::walk() {
    name_thread("tune-ahead");
    std::unique_lock lock(mutex_);
    while (true) {
        walking_.wait(lock, [this] { return is_stopping_ || can_walk(); });
        if (is_stopping_) return;
        const std::size_t queued_before = stages_.queued_count();
        walk_batch();
        if (stages_.queued_count() > queued_before) work_.notify_all();
        if (walked_ <= next_batch_) tell(lock);  // a batch that is waited for
    }
}

void UnitSupply::walk_batch() {
    std::size_t samples = 0;
    std::vector<std::uint32_t> units = needs_.units(walked_, samples);
    batch_samples_ = std::max<std::uint64_t>(samples, 1);
    for (const std::uint32_t unit : units) stages_.want(unit, walked_);
    lacking_[walked_++] = std::move(units);
}

/// Lets go of what the window has passed.
void UnitSupply::release_used() {
    const std::uint64_t first = low();
    lacking_.erase(lacking_.begin(), lacking_.lower_bound(std::min(first, walked_)));
    const bool keeps_ready = options_.keeps_mapped && options_.window_bytes_max == 0;
    const std::vector<std::size_t> passed = stages_.passed(first, keeps_ready);
    for (const std::size_t unit : passed) release(unit);
    if (!passed.empty()) retry_without_room(needs_.end());
}

void UnitSupply::release(std::size_t unit) {
    const Stage stage = stages_.release(unit);
    fetcher_->store().drop(unit);
    if (stage == Stage::kReady) fetcher_->unpin(unit);
    if (ranges_) ranges_->drop(unit);
}

/// Units without room that a batch before `before` wants.
void UnitSupply::retry_without_room(std::uint64_t before) {
    stages_.retry_without_room(before);
    if (stages_.has_absent()) work_.notify_all();
}

/// The files of a part that this process does not want now, the one that it wants last first.
std::vector<std::size_t> UnitSupply::victims(const SupplyPart& part) const {
    std::vector<std::size_t> order;
    std::vector<FollowedPlan> plans;
    std::uint64_t from = 0;
    {
        const std::lock_guard lock(mutex_);
        for (std::size_t file = 0; file < part.cache->file_count(); ++file)
            if (const std::size_t unit = part.first_unit + file;
                part.cache->is_present(file) && stages_.stage(unit) == Stage::kIdle)
                order.push_back(unit);
        plans.assign(needs_.plans().begin(), needs_.plans().end());
        from = walked_;
    }
    const std::vector<std::size_t> soonest_first =
        take_wanted({plans, from, [this](std::int64_t id) { return needs_.needs().of_sample(id); },
                     kVictimLooksMax},
                    order);
    {
        // Of those whose next use is not known, the one used last goes first: data that is read
        // round and round needs the others sooner.
        const std::lock_guard lock(mutex_);
        std::ranges::stable_sort(order, std::greater(),
                                 [this](std::size_t unit) { return stages_.last_batch(unit); });
    }
    order.insert(order.end(), soonest_first.rbegin(), soonest_first.rend());
    for (std::size_t& unit : order) unit -= part.first_unit;
    return order;
}

}  // namespace tune::loader
