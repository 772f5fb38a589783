#pragma once
// The shards that can be read now: those of a local directory, opened and checked when first
// needed, and those that a supply puts here.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "loader/format/compression.h"
#include "loader/format/mds/index.h"
#include "loader/format/mds/shard.h"
#include "loader/source/object_source.h"

namespace tune::loader {

/// Thread-safe. Raw shards stay mapped (address space only); shards that exist only compressed are
/// decompressed into memory and dropped, least recently used first, beyond
/// `decompressed_bytes_max`.
class ShardStore {
public:
    ShardStore(std::filesystem::path directory, Index index, bool checks_hashes,
               std::size_t decompressed_bytes_max);
    /// Of a source that is not on this machine: get() reads whole files of it into memory, which
    /// counts as decompressed.
    ShardStore(std::shared_ptr<const ObjectSource> source, Index index, bool checks_hashes,
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

    /// Whether get() would return at once.
    [[nodiscard]] bool is_open(std::size_t shard);
    /// Whether every shard is open. Wait-free.
    [[nodiscard]] bool are_all_open() const {
        return open_count_.load(std::memory_order_relaxed) == slots_.size();
    }
    /// These are needed next, soonest first: others are dropped before them.
    void keep_longest(std::span<const std::size_t> shards);
    [[nodiscard]] std::size_t decompressed_bytes_max() const { return decompressed_bytes_max_; }

    /// Makes a shard readable without opening it here. With `stays`, open_shard() gives it too.
    void put(std::size_t shard, std::shared_ptr<const Shard> opened, bool stays);
    /// get() gives this error from now on, until put() or drop().
    void fail(std::size_t shard, Error error);
    /// Forgets the shard. REQUIRES: nobody reads it through open_shard().
    void drop(std::size_t shard);

    /// Opens the file of a shard as it is kept in a cache, without its hashes. Errors: those of
    /// get().
    [[nodiscard]] Result<std::shared_ptr<const Shard>> map_file(
        std::size_t shard, const std::filesystem::path& path) const;
    /// The raw bytes of a shard out of its stored file; both are checked. Errors: those of get().
    [[nodiscard]] Result<OwnedBytes> unpack(std::size_t shard, OwnedBytes stored) const;
    /// The shard in raw bytes. Errors: those of get().
    [[nodiscard]] Result<std::shared_ptr<const Shard>> view(std::size_t shard,
                                                            OwnedBytes raw) const;

    /// Time spent decompressing, over all threads.
    [[nodiscard]] double decompress_s() const {
        return static_cast<double>(decompress_ns_.load()) * 1e-9;
    }

private:
    struct Slot {
        std::atomic<const Shard*> pinned = nullptr;  // raw shards, once open
        std::mutex opening;
        std::shared_ptr<const Shard> shard;  // guarded by mutex_
        std::optional<Error> error;          // guarded by mutex_
        bool is_counted = false;             // in decompressed_bytes_; guarded by mutex_
        std::uint64_t last_use = 0;          // guarded by mutex_
    };

    [[nodiscard]] Result<std::shared_ptr<const Shard>> open_raw(const ShardInfo& info) const;
    [[nodiscard]] Result<std::shared_ptr<const Shard>> open_zip(const ShardInfo& info) const;
    [[nodiscard]] Result<std::shared_ptr<const Shard>> open_far(std::size_t shard) const;
    [[nodiscard]] Result<std::shared_ptr<const Shard>> open(std::size_t shard, bool has_raw) const;
    [[nodiscard]] Result<std::shared_ptr<const Shard>> find(std::size_t shard);
    [[nodiscard]] Result<OwnedBytes> timed_decompress(const Compression& compression,
                                                      std::span<const std::byte> stored,
                                                      std::size_t raw_bytes) const;
    void keep(std::size_t shard, std::shared_ptr<const Shard> opened, bool is_pinned);
    void drop_cold_shards();
    void uncount(std::size_t shard);

    const std::shared_ptr<const ObjectSource> source_;  // nullptr: a directory
    const std::filesystem::path directory_;
    const Index index_;
    const bool checks_hashes_;
    const std::size_t decompressed_bytes_max_;
    std::vector<Slot> slots_;
    mutable std::atomic<std::int64_t> decompress_ns_ = 0;

    std::atomic<std::size_t> open_count_ = 0;  // changed under mutex_

    std::mutex mutex_;
    std::uint64_t uses_ = 0;              // guarded by mutex_
    std::size_t decompressed_bytes_ = 0;  // guarded by mutex_
};

/// Checks `bytes` against size and, if asked for, hashes of `file`. Errors: kDataLoss with both
/// values.
[[nodiscard]] Result<void> check_file(std::span<const std::byte> bytes, const FileInfo& file,
                                      bool checks_hashes);

}  // namespace tune::loader
