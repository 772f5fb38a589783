#include "loader/source/shard_opener.h"

#include <algorithm>

#include "base/system/thread.h"

namespace tune::loader {
namespace {

constexpr std::size_t kQueuedPerThread = 8;

}  // namespace

ShardOpener::ShardOpener(std::shared_ptr<ShardStore> store, int threads)
    : store_(std::move(store)), thread_count_(static_cast<std::size_t>(threads)) {}

ShardOpener::~ShardOpener() {
    {
        const std::lock_guard lock(mutex_);
        is_stopping_ = true;
    }
    announced_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

bool ShardOpener::is_busy() const {
    if (store_->are_all_open()) return true;
    const std::lock_guard lock(mutex_);
    return queue_.size() >= thread_count_;
}

void ShardOpener::announce(std::vector<std::size_t> shards) {
    std::uint64_t bytes = 0;
    std::size_t kept = 0;
    for (; kept < shards.size(); ++kept) {
        const ShardInfo& info = store_->index().shards[shards[kept]];
        if (info.zip_data) bytes += info.raw_data.bytes;
        if (kept > 0 && bytes > store_->decompressed_bytes_max() / 2) break;
    }
    shards.resize(kept);
    store_->keep_longest(shards);
    std::erase_if(shards, [this](std::size_t shard) { return store_->is_open(shard); });
    shards.resize(std::min(shards.size(), kQueuedPerThread * thread_count_));
    std::ranges::reverse(shards);
    {
        const std::lock_guard lock(mutex_);
        queue_ = std::move(shards);
        if (queue_.empty()) return;
        while (threads_.size() < thread_count_) threads_.emplace_back([this] { work(); });
    }
    announced_.notify_all();
}

void ShardOpener::work() {
    name_thread("tune-open");
    std::unique_lock lock(mutex_);
    while (true) {
        announced_.wait(lock, [this] { return is_stopping_ || !queue_.empty(); });
        if (is_stopping_) return;
        const std::size_t shard = queue_.back();
        queue_.pop_back();
        lock.unlock();
        // An error is met again, and told, by the batch that needs the shard.
        static_cast<void>(store_->get(shard));
        lock.lock();
    }
}

}  // namespace tune::loader
