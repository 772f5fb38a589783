// The plan's side of the supply: which batch wants which shards, how far ahead to look, and when a
// batch can be read. The other side, shard_supply_fetch.cc, moves bytes.
//
// A window of batches is open: from the first one that is not ended to the last one walked. Shards
// that a batch of the window wants are `wanted`: mapped, pinned against eviction by anybody, or on
// their way. With a cache limit a shard is let go when the window has passed it; what then goes
// first is what the plan wants last (Belady's rule, which needs the future: here it is known).

#include "loader/cache/shard_supply.h"

#include <pthread.h>

#include <algorithm>

#include "base/system/thread.h"

namespace tune::loader {
namespace {

constexpr int kBucketShift = 10;
/// Shards that fetch, check and decompress at once, each with requests in parallel.
constexpr int kFetchThreads = 4;
/// Without a predownload: shards on their way, and batches looked at, at least.
constexpr std::size_t kShardsAhead = 12;
constexpr std::uint64_t kBatchesAhead = 8;
/// Samples of the plan that are looked at to find a victim: 0.1 s where the order is worked out.
constexpr std::size_t kVictimLooksMax = std::size_t{1} << 20;
/// Threads that wait for shards which other processes fetch, about as many as are looked ahead to.
constexpr std::size_t kWaitersMax = 64;

}  // namespace

ShardSupply::ShardSupply(std::vector<SupplyPart> parts, std::shared_ptr<ShardStore> store,
                         SupplyOptions options)
    : parts_(std::move(parts)),
      store_(std::move(store)),
      options_(std::move(options)),
      shards_(store_->index().shards.size()),
      reader_(options_.connections) {
    std::int64_t begin = 0;
    for (const ShardInfo& shard : store_->index().shards) {
        begins_.push_back(begin);
        begin += shard.samples;
        if (shard.zip_data) is_rangeable_ = false;
    }
    begins_.push_back(begin);
    std::uint32_t shard = 0;
    for (std::int64_t id = 0; id < begin; id += std::int64_t{1} << kBucketShift) {
        while (begins_[shard + 1] <= id) ++shard;
        bucket_shards_.push_back(shard);
    }
    has_limit_ = options_.window_bytes_max > 0;
    holds_downloads_ = can_range_ = is_rangeable_;
    threads_.emplace_back([this] { walk(); });
    for (int i = 0; i < kFetchThreads; ++i) threads_.emplace_back([this] { work(); });
}

ShardSupply::~ShardSupply() {
    {
        const std::lock_guard lock(mutex_);
        is_stopping_ = true;
    }
    if (options_.stop) options_.stop->set();
    reader_.stop();
    walking_.notify_all();
    work_.notify_all();
    elsewhere_changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    // They may wait in the kernel for another process, which only this ends.
    for (std::thread& waiter : waiters_) ::pthread_cancel(waiter.native_handle());
    for (std::thread& waiter : waiters_) waiter.join();
    for (std::size_t shard = 0; shard < shards_.size(); ++shard)
        if (shards_[shard].stage == Stage::kReady) {
            store_->drop(shard);
            part_of(shard).cache->unpin(file_of(shard));
        }
}

void ShardSupply::set_listener(std::function<void()> listener) {
    const std::lock_guard lock(listener_mutex_);
    listener_ = std::move(listener);
}

/// Lets everybody know that something came or failed. `lock` is held before and after.
void ShardSupply::tell(std::unique_lock<std::mutex>& lock) {
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

std::uint64_t ShardSupply::follow(std::shared_ptr<const EpochPlan> plan) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t base = next_base_;
    next_base_ += plan->batch_count();
    std::erase_if(plans_, [this](const FollowedPlan& old) {
        return old.base + old.plan->batch_count() <= std::min(low(), walked_);
    });
    plans_.push_back({std::move(plan), base});
    walking_.notify_one();
    return base;
}

void ShardSupply::forget() {
    const std::lock_guard lock(mutex_);
    plans_.clear();
    ranged_.clear();
    next_batch_ = walked_ = next_base_;
    is_warm_ = false;
    holds_downloads_ = can_range_ = is_rangeable_;
    for (const std::size_t shard : std::vector<std::size_t>(wanted_.begin(), wanted_.end())) {
        const Stage stage = shards_[shard].stage;
        const bool is_there = stage == Stage::kReady || stage == Stage::kInMemory;
        if (!is_in_hand(stage) && !is_there) release(shard);
    }
    release_used();
}

void ShardSupply::expect(std::uint64_t batch) {
    const std::lock_guard lock(mutex_);
    open_.insert(batch);
    next_batch_ = std::max(next_batch_, batch + 1);
    walking_.notify_one();
    // Those that nobody waited for were left; now somebody does.
    if (!can_range_) retry_without_room(next_batch_);
    if (!is_warm_ || pending_ > 0) work_.notify_one();
}

void ShardSupply::end(std::uint64_t batch) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t before = low();
    open_.erase(batch);
    ranged_.erase(batch);
    if (low() == before) return;
    release_used();
    walking_.notify_one();
}

bool ShardSupply::is_ready(std::uint64_t batch) {
    const std::lock_guard lock(mutex_);
    return is_there(batch);
}

void ShardSupply::wait(std::uint64_t batch) {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this, batch] { return is_there(batch); });
}

/// REQUIRES: mutex_.
bool ShardSupply::is_there(std::uint64_t batch) {
    if (ranged_.contains(batch)) return true;
    if (walked_ <= batch || (pending_ > 0 && !all_there(batch))) return false;
    is_warm_ = true;
    if (std::exchange(holds_downloads_, false)) work_.notify_all();
    return true;
}

FetchStats ShardSupply::stats() const {
    const std::lock_guard lock(mutex_);
    return stats_;
}

const FollowedPlan* ShardSupply::plan_of(std::uint64_t batch) const {
    for (const FollowedPlan& plan : plans_)
        if (batch >= plan.base && batch < plan.base + plan.plan->batch_count()) return &plan;
    return nullptr;
}

std::span<const std::int64_t> ShardSupply::ids_of(const FollowedPlan& plan, std::size_t batch,
                                                  std::vector<std::int64_t>& scratch) {
    return plan.plan->batch(batch, scratch);
}

std::span<const std::int64_t> ShardSupply::ids_of(std::uint64_t batch,
                                                  std::vector<std::int64_t>& scratch) const {
    const FollowedPlan* const plan = plan_of(batch);
    if (!plan) return {};
    return ids_of(*plan, batch - plan->base, scratch);
}

std::size_t ShardSupply::shard_of(std::int64_t id) const {
    std::size_t shard = bucket_shards_[static_cast<std::size_t>(id >> kBucketShift)];
    while (begins_[shard + 1] <= id) ++shard;
    return shard;
}

ShardSupply::Needs ShardSupply::needs_of(std::uint64_t batch) const {
    Needs needs;
    std::vector<std::int64_t> scratch;
    for (const std::int64_t id : ids_of(batch, scratch)) {
        const std::size_t shard = shard_of(id);
        needs[shard].push_back(static_cast<std::uint32_t>(id - begins_[shard]));
    }
    return needs;
}

bool ShardSupply::all_there(std::uint64_t batch) const {
    std::vector<std::int64_t> scratch;
    const std::span<const std::int64_t> ids = ids_of(batch, scratch);
    return std::all_of(ids.begin(), ids.end(), [this](std::int64_t id) {
        const Stage stage = shards_[shard_of(id)].stage;
        return stage == Stage::kReady || stage == Stage::kInMemory || stage == Stage::kFailed;
    });
}

std::uint64_t ShardSupply::plans_end() const {
    return plans_.empty() ? walked_ : plans_.back().base + plans_.back().plan->batch_count();
}

/// The first batch that may still be read.
std::uint64_t ShardSupply::low() const {
    return open_.empty() ? next_batch_ : *open_.begin();
}

bool ShardSupply::can_walk() const {
    if (walked_ >= plans_end()) return false;
    if (walked_ < next_batch_) return true;
    if (has_limit_ && window_bytes_ >= options_.window_bytes_max) return false;
    const std::uint64_t ahead = walked_ - next_batch_;
    if (options_.predownload > 0)
        return ahead * batch_samples_ < static_cast<std::uint64_t>(options_.predownload);
    return ahead < kBatchesAhead || pending_ < kShardsAhead;
}

void ShardSupply::walk() {
    name_thread("tune-ahead");
    std::unique_lock lock(mutex_);
    while (true) {
        walking_.wait(lock, [this] { return is_stopping_ || can_walk(); });
        if (is_stopping_) return;
        const std::size_t queued_before = queued_.size();
        walk_batch();
        if (queued_.size() > queued_before) work_.notify_all();
        if (walked_ <= next_batch_) tell(lock);  // a batch that is waited for
    }
}

void ShardSupply::walk_batch() {
    std::vector<std::int64_t> scratch;
    const std::span<const std::int64_t> ids = ids_of(walked_, scratch);
    batch_samples_ = std::max<std::uint64_t>(ids.size(), 1);
    for (const std::int64_t id : ids) {
        const std::size_t shard = shard_of(id);
        ShardState& state = shards_[shard];
        state.last_batch = walked_;
        if (state.stage != Stage::kIdle) continue;
        state.first_batch = walked_;
        wanted_.insert(shard);
        window_bytes_ += store_->index().shards[shard].raw_data.bytes;
        ++pending_;
        want(shard, Stage::kQueued);
    }
    ++walked_;
}

/// Puts a shard in line for a thread.
void ShardSupply::want(std::size_t shard, Stage stage) {
    shards_[shard].stage = stage;
    no_room_.erase(shard);
    (stage == Stage::kQueued ? queued_ : absent_).insert({shards_[shard].first_batch, shard});
}

/// Lets go of what the window has passed. Without a limit shards stay mapped: it is address space.
void ShardSupply::release_used() {
    const std::uint64_t first = low();
    std::vector<std::size_t> passed;
    for (const std::size_t shard : wanted_) {
        const ShardState& state = shards_[shard];
        const bool may_stay = state.stage == Stage::kReady && !has_limit_;
        if (state.last_batch < first && !is_in_hand(state.stage) && !may_stay)
            passed.push_back(shard);
    }
    for (const std::size_t shard : passed) release(shard);
    if (!passed.empty()) retry_without_room(next_base_);
}

/// Shards without room that a batch before `before` wants.
void ShardSupply::retry_without_room(std::uint64_t before) {
    for (const std::size_t shard : std::vector<std::size_t>(no_room_.begin(), no_room_.end()))
        if (shards_[shard].first_batch < before) want(shard, Stage::kAbsent);
    if (!absent_.empty()) work_.notify_all();
}

void ShardSupply::release(std::size_t shard) {
    ShardState& state = shards_[shard];
    queued_.erase({state.first_batch, shard});
    absent_.erase({state.first_batch, shard});
    no_room_.erase(shard);
    const bool is_there = state.stage == Stage::kReady || state.stage == Stage::kInMemory ||
                          state.stage == Stage::kFailed;
    if (!is_there) --pending_;
    store_->drop(shard);
    if (state.stage == Stage::kReady) part_of(shard).cache->unpin(file_of(shard));
    state.sparse.reset();
    state.stage = Stage::kIdle;
    wanted_.erase(shard);
    window_bytes_ -= store_->index().shards[shard].raw_data.bytes;
}

/// The files of a part that this process does not want now, the one that it wants last first.
std::vector<std::size_t> ShardSupply::victims(const SupplyPart& part) const {
    std::vector<std::size_t> order;
    std::vector<FollowedPlan> plans;
    std::uint64_t from = 0;
    {
        const std::lock_guard lock(mutex_);
        for (std::size_t file = 0; file < part.cache->file_count(); ++file)
            if (const std::size_t shard = part.first_shard + file;
                part.cache->is_present(file) && shards_[shard].stage == Stage::kIdle)
                order.push_back(shard);
        plans = plans_;
        from = walked_;
    }
    const std::vector<std::size_t> soonest_first = take_wanted(
        {plans, from, [this](std::int64_t id) { return shard_of(id); }, kVictimLooksMax}, order);
    {
        // Of those whose next use is not known, the one used last goes first: data that is read
        // round and round needs the others sooner.
        const std::lock_guard lock(mutex_);
        std::ranges::stable_sort(order, std::greater(),
                                 [this](std::size_t shard) { return shards_[shard].last_batch; });
    }
    order.insert(order.end(), soonest_first.rbegin(), soonest_first.rend());
    for (std::size_t& shard : order) shard -= part.first_shard;
    return order;
}

/// REQUIRES: mutex_. Each such shard has a thread of its own that waits for it in the kernel: one
/// process that stalls hides nothing that others have finished.
void ShardSupply::wait_elsewhere(std::size_t shard) {
    elsewhere_.push_back(shard);
    if (elsewhere_.size() > idle_waiters_ && waiters_.size() < kWaitersMax && !is_stopping_)
        waiters_.emplace_back([this] { wait_for_claims(); });
    else
        elsewhere_changed_.notify_one();
}

const SupplyPart& ShardSupply::part_of(std::size_t shard) const {
    const auto after = std::upper_bound(
        parts_.begin(), parts_.end(), shard,
        [](std::size_t number, const SupplyPart& part) { return number < part.first_shard; });
    return *std::prev(after);
}

std::size_t ShardSupply::file_of(std::size_t shard) const {
    return shard - part_of(shard).first_shard;
}

}  // namespace tune::loader
