#pragma once
// The shards of one local directory, opened and checked when first needed.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"
#include "loader/format/mds/index.h"
#include "loader/format/mds/shard.h"

namespace tune::loader {

/// Thread-safe. Raw shards stay mapped (address space only); shards that exist only compressed are
/// decompressed into memory and dropped, least recently used first, beyond
/// `decompressed_bytes_max`.
class ShardStore {
public:
    ShardStore(std::filesystem::path directory, Index index, bool checks_hashes,
               std::size_t decompressed_bytes_max);

    [[nodiscard]] const Index& index() const { return index_; }

    /// Opens the shard if need be: size, hashes (if asked for), header. Errors: kDataLoss or the
    /// system's reason, with the shard's path as context; nothing is remembered, so that a later
    /// call tries again.
    [[nodiscard]] Result<std::shared_ptr<const Shard>> get(std::size_t shard);

    /// The shard if it is open and will stay so, else nullptr. Wait-free.
    [[nodiscard]] const Shard* open_shard(std::size_t shard) const {
        return slots_[shard].pinned.load(std::memory_order_acquire);
    }

private:
    struct Slot {
        std::atomic<const Shard*> pinned = nullptr;  // raw shards, once open
        std::mutex opening;
        std::shared_ptr<const Shard> shard;  // guarded by mutex_
        std::uint64_t last_use = 0;          // guarded by mutex_
    };

    [[nodiscard]] Result<std::shared_ptr<const Shard>> open_raw(const ShardInfo& info) const;
    [[nodiscard]] Result<std::shared_ptr<const Shard>> open_zip(const ShardInfo& info) const;
    [[nodiscard]] std::shared_ptr<const Shard> find(std::size_t shard);
    void keep(std::size_t shard, std::shared_ptr<const Shard> opened, bool is_pinned);
    void drop_cold_shards();

    const std::filesystem::path directory_;
    const Index index_;
    const bool checks_hashes_;
    const std::size_t decompressed_bytes_max_;
    std::vector<Slot> slots_;

    std::mutex mutex_;
    std::uint64_t uses_ = 0;              // guarded by mutex_
    std::size_t decompressed_bytes_ = 0;  // guarded by mutex_
};

/// Checks `bytes` against size and, if asked for, hashes of `file`. Errors: kDataLoss with both
/// values.
[[nodiscard]] Result<void> check_file(std::span<const std::byte> bytes, const FileInfo& file,
                                      bool checks_hashes);

}  // namespace tune::loader
