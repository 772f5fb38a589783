// Each shard has a mutex of its own, under which it is opened by whoever needs it first; a failed
// open leaves nothing behind and is tried again. Mapped shards are published through an atomic
// pointer, so that the usual read takes no lock. Decompressed ones are shared pointers with the
// time of their last use: dropping one removes only the store's reference, and readers keep theirs.

#include "loader/source/shard_store.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "loader/format/hash.h"
#include "loader/source/mapped_file.h"

namespace tune::loader {

Result<void> check_file(std::span<const std::byte> bytes, const FileInfo& file,
                        bool checks_hashes) {
    if (bytes.size() != file.bytes)
        return Error{Code::kDataLoss, "it has " + std::to_string(bytes.size()) +
                                          " bytes, the index states " + std::to_string(file.bytes)};
    if (!checks_hashes) return {};
    for (const auto& [name, expected] : file.hashes) {
        TUNE_TRY(found, hash_hex(name, bytes));
        if (found != expected)
            return Error{Code::kDataLoss, "its content was changed: " + name + " is " + found +
                                              ", the index states " + expected};
    }
    return {};
}

ShardStore::ShardStore(std::filesystem::path directory, Index index, bool checks_hashes,
                       std::size_t decompressed_bytes_max)
    : directory_(std::move(directory)),
      index_(std::move(index)),
      checks_hashes_(checks_hashes),
      decompressed_bytes_max_(decompressed_bytes_max),
      slots_(index_.shards.size()) {}

ShardStore::ShardStore(std::shared_ptr<const ObjectSource> source, Index index, bool checks_hashes,
                       std::size_t decompressed_bytes_max)
    : source_(std::move(source)),
      directory_(source_->url()),
      index_(std::move(index)),
      checks_hashes_(checks_hashes),
      decompressed_bytes_max_(decompressed_bytes_max),
      slots_(index_.shards.size()) {}

Result<OwnedBytes> ShardStore::timed_decompress(const Compression& compression,
                                                std::span<const std::byte> stored,
                                                std::size_t raw_bytes) const {
    const auto begin = std::chrono::steady_clock::now();
    Result<OwnedBytes> raw = decompress(compression, stored, raw_bytes);
    decompress_ns_ += std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
    return raw;
}

Result<std::shared_ptr<const Shard>> ShardStore::open_raw(const ShardInfo& info) const {
    TUNE_TRY(file, MappedFile::open(directory_ / info.raw_data.basename));
    file->read_ahead();
    TUNE_TRY_VOID(check_file(file->bytes(), info.raw_data, checks_hashes_));
    TUNE_TRY(shard, Shard::make(file->bytes(), file, info));
    return std::make_shared<const Shard>(std::move(shard));
}

Result<std::shared_ptr<const Shard>> ShardStore::open_zip(const ShardInfo& info) const {
    TUNE_TRY(compression, parse_compression(info.compression));
    TUNE_TRY(file, MappedFile::open(directory_ / info.zip_data->basename));
    TUNE_TRY_VOID(check_file(file->bytes(), *info.zip_data, checks_hashes_));
    TUNE_TRY(raw, timed_decompress(compression, file->bytes(), info.raw_data.bytes));
    TUNE_TRY_VOID(check_file(raw.bytes(), info.raw_data, checks_hashes_));
    const std::span<const std::byte> bytes = raw.bytes();
    TUNE_TRY(shard, Shard::make(bytes, std::make_shared<OwnedBytes>(std::move(raw)), info));
    return std::make_shared<const Shard>(std::move(shard));
}

Result<std::shared_ptr<const Shard>> ShardStore::map_file(std::size_t shard,
                                                          const std::filesystem::path& path) const {
    TUNE_TRY(file, MappedFile::open(path));
    file->read_ahead();
    TUNE_TRY(opened, Shard::make(file->bytes(), file, index_.shards[shard]));
    return std::make_shared<const Shard>(std::move(opened));
}

Result<OwnedBytes> ShardStore::unpack(std::size_t shard, OwnedBytes stored) const {
    const ShardInfo& info = index_.shards[shard];
    OwnedBytes raw = std::move(stored);
    if (info.zip_data) {
        TUNE_TRY(compression, parse_compression(info.compression));
        TUNE_TRY_VOID(check_file(raw.bytes(), *info.zip_data, checks_hashes_));
        TUNE_TRY(unpacked, timed_decompress(compression, raw.bytes(), info.raw_data.bytes));
        raw = std::move(unpacked);
    }
    TUNE_TRY_VOID(check_file(raw.bytes(), info.raw_data, checks_hashes_));
    return raw;
}

Result<std::shared_ptr<const Shard>> ShardStore::view(std::size_t shard, OwnedBytes raw) const {
    const std::span<const std::byte> bytes = raw.bytes();
    TUNE_TRY(opened, Shard::make(bytes, std::make_shared<OwnedBytes>(std::move(raw)),
                                 index_.shards[shard]));
    return std::make_shared<const Shard>(std::move(opened));
}

Result<std::shared_ptr<const Shard>> ShardStore::open_far(std::size_t shard) const {
    const ShardInfo& info = index_.shards[shard];
    const FileInfo& file = info.zip_data ? *info.zip_data : info.raw_data;
    OwnedBytes bytes;
    bytes.size = file.bytes;
    bytes.data.reset(new (std::nothrow) std::byte[std::max<std::size_t>(bytes.size, 1)]);
    if (!bytes.data)
        return Error{Code::kResourceExhausted,
                     "no memory for its " + std::to_string(bytes.size) + " bytes"};
    TUNE_TRY_VOID(
        source_->read({file.basename, file.bytes, ""}, 0, {bytes.data.get(), bytes.size}));
    TUNE_TRY(raw, unpack(shard, std::move(bytes)));
    return view(shard, std::move(raw));
}

Result<std::shared_ptr<const Shard>> ShardStore::find(std::size_t shard) {
    const std::lock_guard lock(mutex_);
    if (slots_[shard].error) return *slots_[shard].error;
    slots_[shard].last_use = ++uses_;
    return slots_[shard].shard;
}

Result<std::shared_ptr<const Shard>> ShardStore::open(std::size_t shard, bool has_raw) const {
    if (source_) return open_far(shard);
    const ShardInfo& info = index_.shards[shard];
    return has_raw ? open_raw(info) : open_zip(info);
}

Result<std::shared_ptr<const Shard>> ShardStore::get(std::size_t shard) {
    TUNE_TRY(known, find(shard));
    if (known) return known;
    const std::lock_guard opening(slots_[shard].opening);
    TUNE_TRY(known_now, find(shard));
    if (known_now) return known_now;  // opened by another thread meanwhile

    const ShardInfo& info = index_.shards[shard];
    // Upstream keeps the decompressed file beside the compressed one when it has read it once.
    std::error_code ignored;
    const bool has_raw =
        !info.zip_data ||
        (!source_ && std::filesystem::exists(directory_ / info.raw_data.basename, ignored));
    Result<std::shared_ptr<const Shard>> opened = open(shard, has_raw);
    if (opened) {
        keep(shard, *opened, has_raw && !source_);
        return opened;
    }
    Error error = std::move(opened).error();
    const FileInfo& file = has_raw ? info.raw_data : *info.zip_data;
    error.context = "shard '" + (directory_ / file.basename).string() + "'";
    return error;
}

void ShardStore::put(std::size_t shard, std::shared_ptr<const Shard> opened, bool stays) {
    const std::lock_guard lock(mutex_);
    Slot& slot = slots_[shard];
    uncount(shard);
    slot.error.reset();
    if (!slot.shard) ++open_count_;
    slot.shard = std::move(opened);
    slot.pinned.store(stays ? slot.shard.get() : nullptr, std::memory_order_release);
}

void ShardStore::fail(std::size_t shard, Error error) {
    const std::lock_guard lock(mutex_);
    slots_[shard].error = std::move(error);
}

void ShardStore::drop(std::size_t shard) {
    std::shared_ptr<const Shard> dropped;  // unmapped without the lock
    const std::lock_guard lock(mutex_);
    Slot& slot = slots_[shard];
    uncount(shard);
    slot.error.reset();
    slot.pinned.store(nullptr, std::memory_order_release);
    dropped = std::exchange(slot.shard, nullptr);
    if (dropped) --open_count_;
}

bool ShardStore::is_open(std::size_t shard) {
    const std::lock_guard lock(mutex_);
    return slots_[shard].shard != nullptr;
}

void ShardStore::keep_longest(std::span<const std::size_t> shards) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = shards.size(); i-- > 0;) slots_[shards[i]].last_use = ++uses_;
}

void ShardStore::keep(std::size_t shard, std::shared_ptr<const Shard> opened, bool is_pinned) {
    const std::lock_guard lock(mutex_);
    Slot& slot = slots_[shard];
    if (!slot.shard) ++open_count_;
    slot.shard = std::move(opened);
    if (is_pinned) {
        slot.pinned.store(slot.shard.get(), std::memory_order_release);
        return;
    }
    decompressed_bytes_ += index_.shards[shard].raw_data.bytes;
    slot.is_counted = true;
    drop_cold_shards();
}

/// REQUIRES: mutex_.
void ShardStore::uncount(std::size_t shard) {
    if (std::exchange(slots_[shard].is_counted, false))
        decompressed_bytes_ -= index_.shards[shard].raw_data.bytes;
}

/// Drops decompressed shards until the limit holds, but never the one used last. Readers that hold
/// a dropped shard keep it alive until they are done.
void ShardStore::drop_cold_shards() {
    while (decompressed_bytes_ > decompressed_bytes_max_) {
        Slot* coldest = nullptr;
        std::size_t coldest_shard = 0;
        for (std::size_t shard = 0; shard < slots_.size(); ++shard) {
            Slot& slot = slots_[shard];
            if (!slot.is_counted || slot.last_use == uses_) continue;
            if (coldest && coldest->last_use <= slot.last_use) continue;
            coldest = &slot;
            coldest_shard = shard;
        }
        if (!coldest) return;
        coldest->shard.reset();
        --open_count_;
        uncount(coldest_shard);
    }
}

}  // namespace tune::loader
