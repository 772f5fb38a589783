// One mutex for the bookkeeping; a shard is decoded without it. Whoever finds a shard missing marks
// it as being loaded, others wait for the mark to go. A thread that decodes ahead takes the soonest
// announced shard that nobody has or makes, and stops while the cache is full of shards that were
// used after the announcement, so that looking ahead never drives out what is needed now.

#include "loader/rows/shard_cache.h"

#include <algorithm>

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
    lock.unlock();
    Result<ShardPtr> loaded = load_(shard);
    lock.lock();
    entry.is_loading = false;
    if (loaded) {
        entry.shard = *loaded;
        uses_.push_front(shard);
        entry.use = uses_.begin();
        bytes_ += entry.shard->bytes();
        drop_cold_shards(shard);
    }
    loaded_.notify_all();
    return loaded;
}

void ShardCache::drop_cold_shards(std::size_t kept) {
    while (bytes_ > bytes_max_ && uses_.back() != kept) {
        Entry& coldest = entries_[uses_.back()];
        bytes_ -= coldest.shard->bytes();
        coldest.shard.reset();
        uses_.pop_back();
    }
}

void ShardCache::announce(std::vector<std::size_t> shards) {
    if (threads_ahead_ == 0) return;
    {
        const std::lock_guard lock(mutex_);
        ahead_.assign(shards.rbegin(), shards.rend());
        queued_ahead_ = ahead_.size();
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
        const bool is_full = bytes_ + bytes_ / std::max<std::size_t>(uses_.size(), 1) > bytes_max_;
        if (entries_[shard].shard || entries_[shard].is_loading || is_full) continue;
        // An error is met again, and told, by the batch that needs the shard.
        static_cast<void>(load_unlocked(shard, lock));
    }
}

}  // namespace tune::loader
