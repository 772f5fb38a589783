#pragma once
// Opens shards before they are read. Internal to the loader.

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "loader/source/shard_store.h"

namespace tune::loader {

/// Threads that map, check and decompress the shards of a store which are read next, so that no
/// batch waits for a whole shard. Thread-safe.
class ShardOpener {
public:
    /// `threads` > 0; they begin with the first shard that is announced.
    ShardOpener(std::shared_ptr<ShardStore> store, int threads);
    ~ShardOpener();
    ShardOpener(const ShardOpener&) = delete;
    ShardOpener& operator=(const ShardOpener&) = delete;

    /// The shards that are read next, soonest first. Replaces what was announced before. As many
    /// are opened as half of what the store may keep decompressed holds, at least one.
    void announce(std::vector<std::size_t> shards);

    /// Whether announcing shards would change nothing now.
    [[nodiscard]] bool is_busy() const;

private:
    void work();

    const std::shared_ptr<ShardStore> store_;
    const std::size_t thread_count_;
    mutable std::mutex mutex_;
    std::condition_variable announced_;
    std::vector<std::size_t> queue_;  // soonest last
    bool is_stopping_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace tune::loader
