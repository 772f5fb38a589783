#pragma once
// Decoded shards, kept while there is room. Internal to the loader.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/result.h"
#include "loader/rows/row_shard.h"

namespace tune::loader {

/// Thread-safe. A shard is decoded once however many threads ask for it, by whoever asks first, or
/// ahead of time by threads of the cache's own. Least recently used ones are dropped beyond
/// `bytes_max`; readers keep what they hold. An error is not remembered: the next call tries again.
class ShardCache {
public:
    using ShardPtr = std::shared_ptr<const RowShard>;
    using Load = std::function<Result<ShardPtr>(std::size_t shard)>;

    ShardCache(std::size_t shard_count, std::size_t bytes_max, int threads_ahead, Load load);
    ~ShardCache();
    ShardCache(const ShardCache&) = delete;
    ShardCache& operator=(const ShardCache&) = delete;

    /// Waits when another thread is decoding it. Errors: those of `load`.
    [[nodiscard]] Result<ShardPtr> get(std::size_t shard);

    /// The shards that will be asked for next, soonest first, those that are here included: none of
    /// them is dropped for one that comes later. Replaces what was announced before.
    void announce(std::vector<std::size_t> shards);

    /// Shards that may be decoded ahead at one time.
    [[nodiscard]] std::size_t threads_ahead() const { return threads_ahead_; }

    /// Whether announcing more would change nothing now. Wait-free.
    [[nodiscard]] bool is_busy_ahead() const {
        return queued_ahead_.load(std::memory_order_relaxed) >= threads_ahead_ ||
               loaded_count_.load(std::memory_order_relaxed) == entries_.size();
    }

private:
    struct Entry {
        ShardPtr shard;
        bool is_loading = false;
        bool is_announced = false;
        std::list<std::size_t>::iterator use = {};  // valid while `shard` is there
    };

    [[nodiscard]] Result<ShardPtr> load_unlocked(std::size_t shard,
                                                 std::unique_lock<std::mutex>& lock);
    void drop(std::size_t shard);
    void drop_cold_shards(std::size_t kept);
    [[nodiscard]] std::optional<std::size_t> coldest_unannounced(std::size_t kept) const;
    [[nodiscard]] bool make_room_ahead(std::size_t shard);
    void load_ahead();
    void start_threads();

    const std::size_t bytes_max_;
    const std::size_t threads_ahead_;
    const Load load_;

    std::mutex mutex_;
    std::condition_variable loaded_;
    std::condition_variable announced_;
    std::vector<Entry> entries_;
    std::list<std::size_t> uses_;  // loaded shards, the one used last at the front
    std::size_t bytes_ = 0;
    std::size_t loading_count_ = 0;
    std::vector<std::size_t> announced_shards_;
    std::vector<std::size_t> ahead_;  // those of them that are to be loaded, soonest last
    std::atomic<std::size_t> queued_ahead_ = 0;
    std::atomic<std::size_t> loaded_count_ = 0;
    bool is_stopping_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace tune::loader
