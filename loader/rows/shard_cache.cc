// One mutex for the bookkeeping; a shard is decoded without it. Whoever finds a shard missing marks
// it as being loaded, others wait for the mark to go. A thread that decodes ahead takes the soonest
// announced shard that nobody has or makes. Room for it comes from shards that were not announced,
// the one used longest ago first; when all that is here was announced it stops, so that looking
// ahead never drives out what is needed sooner.

#include "loader/rows/shard_cache.h"

#include <algorithm>
#include <iterator>

namespace tune::loader {

ShardCache::ShardCache(std::size_t shard_count, std::size_t bytes_max, int threads_ahead, Load load)
    : bytes_max_(bytes_max),
      threads_ahead_(static_cast<std::size_t>(threads_ahead)),
      load_(std::move(load)),
      entries_(shard_count) {}

ShardCache::~ShardCache() {
    {
        const std::lock_guard lock(mutex_);
        is_stopping_ = true;
    }
    announced_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

Result<ShardCache::ShardPtr> ShardCache::get(std::size_t shard) {
    std::unique_lock lock(mutex_);
    Entry& entry = entries_[shard];
    loaded_.wait(lock, [&] { return !entry.is_loading; });
    if (!entry.shard) return load_unlocked(shard, lock);
    uses_.splice(uses_.begin(), uses_, entry.use);
    return entry.shard;
}

/// REQUIRES: `lock` held, and the shard neither there nor being loaded. Holds `lock` again after.
Result<ShardCache::ShardPtr> ShardCache::load_unlocked(std::size_t shard,
                                                       std::unique_lock<std::mutex>& lock) {
    Entry& entry = entries_[shard];
    entry.is_loading = true;
    ++loading_count_;
    lock.unlock();
    Result<ShardPtr> loaded = load_(shard);
    lock.lock();
    --loading_count_;
    entry.is_loading = false;
    if (loaded) {
        entry.shard = *loaded;
        uses_.push_front(shard);
        entry.use = uses_.begin();
        bytes_ += entry.shard->bytes();
        ++loaded_count_;
        drop_cold_shards(shard);
    }
    loaded_.notify_all();
    return loaded;
}

void ShardCache::drop(std::size_t shard) {
    Entry& entry = entries_[shard];
    bytes_ -= entry.shard->bytes();
    entry.shard.reset();
    uses_.erase(entry.use);
    --loaded_count_;
}

std::optional<std::size_t> ShardCache::coldest_unannounced(std::size_t kept) const {
    const auto found = std::find_if(uses_.rbegin(), uses_.rend(), [&](std::size_t shard) {
        return shard != kept && !entries_[shard].is_announced;
    });
    return found == uses_.rend() ? std::nullopt : std::optional(*found);
}

void ShardCache::drop_cold_shards(std::size_t kept) {
    while (bytes_ > bytes_max_ && uses_.size() > 1) {
        const std::size_t coldest =
            uses_.back() == kept ? *std::next(uses_.rbegin()) : uses_.back();
        drop(coldest_unannounced(kept).value_or(coldest));
    }
}

/// Whether there is room for one more shard of the usual size. REQUIRES: mutex_ held.
bool ShardCache::make_room_ahead(std::size_t shard) {
    while (!uses_.empty()) {
        const std::size_t usual = bytes_ / uses_.size();
        if (bytes_ + usual * (loading_count_ + 1) <= bytes_max_) return true;
        const std::optional<std::size_t> coldest = coldest_unannounced(shard);
        if (!coldest) return false;
        drop(*coldest);
    }
    return true;
}

void ShardCache::announce(std::vector<std::size_t> shards) {
    if (threads_ahead_ == 0) return;
    {
        const std::lock_guard lock(mutex_);
        for (const std::size_t shard : announced_shards_) entries_[shard].is_announced = false;
        announced_shards_ = std::move(shards);
        ahead_.clear();
        for (const std::size_t shard : announced_shards_) {
            Entry& entry = entries_[shard];
            entry.is_announced = true;
            if (!entry.shard && !entry.is_loading && ahead_.size() < threads_ahead_)
                ahead_.push_back(shard);
        }
        std::reverse(ahead_.begin(), ahead_.end());
        queued_ahead_ = ahead_.size();
        if (ahead_.empty()) return;
        if (threads_.empty()) start_threads();
    }
    announced_.notify_all();
}

void ShardCache::start_threads() {
    for (std::size_t i = 0; i < threads_ahead_; ++i)
        threads_.emplace_back([this] { load_ahead(); });
}

void ShardCache::load_ahead() {
    std::unique_lock lock(mutex_);
    while (true) {
        announced_.wait(lock, [this] { return is_stopping_ || !ahead_.empty(); });
        if (is_stopping_) return;
        const std::size_t shard = ahead_.back();
        ahead_.pop_back();
        queued_ahead_ = ahead_.size();
        if (entries_[shard].shard || entries_[shard].is_loading || !make_room_ahead(shard))
            continue;
        // An error is met again, and told, by the batch that needs the shard.
        static_cast<void>(load_unlocked(shard, lock));
    }
}

}  // namespace tune::loader
