// Each shard has a mutex of its own, under which it is opened by whoever needs it first; a failed
// open leaves nothing behind and is tried again. Mapped shards are published through an atomic
// pointer, so that the usual read takes no lock. Decompressed ones are shared pointers with the
// time of their last use: dropping one removes only the store's reference, and readers keep theirs.

#include "loader/source/shard_store.h"

#include "loader/format/compression.h"
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
    TUNE_TRY(raw, decompress(compression, file->bytes(), info.raw_data.bytes));
    TUNE_TRY_VOID(check_file(raw.bytes(), info.raw_data, checks_hashes_));
    const std::span<const std::byte> bytes = raw.bytes();
    TUNE_TRY(shard, Shard::make(bytes, std::make_shared<OwnedBytes>(std::move(raw)), info));
    return std::make_shared<const Shard>(std::move(shard));
}

std::shared_ptr<const Shard> ShardStore::find(std::size_t shard) {
    const std::lock_guard lock(mutex_);
    slots_[shard].last_use = ++uses_;
    return slots_[shard].shard;
}

Result<std::shared_ptr<const Shard>> ShardStore::get(std::size_t shard) {
    if (auto open = find(shard)) return open;
    const std::lock_guard opening(slots_[shard].opening);
    if (auto open = find(shard)) return open;  // opened by another thread meanwhile

    const ShardInfo& info = index_.shards[shard];
    // Upstream keeps the decompressed file beside the compressed one when it has read it once.
    std::error_code ignored;
    const bool has_raw =
        !info.zip_data || std::filesystem::exists(directory_ / info.raw_data.basename, ignored);
    Result<std::shared_ptr<const Shard>> opened = has_raw ? open_raw(info) : open_zip(info);
    if (opened) {
        keep(shard, *opened, has_raw);
        return opened;
    }
    Error error = std::move(opened).error();
    const FileInfo& file = has_raw ? info.raw_data : *info.zip_data;
    error.context = "shard '" + (directory_ / file.basename).string() + "'";
    return error;
}

void ShardStore::keep(std::size_t shard, std::shared_ptr<const Shard> opened, bool is_pinned) {
    const std::lock_guard lock(mutex_);
    Slot& slot = slots_[shard];
    slot.shard = std::move(opened);
    if (is_pinned) {
        slot.pinned.store(slot.shard.get(), std::memory_order_release);
        return;
    }
    decompressed_bytes_ += index_.shards[shard].raw_data.bytes;
    drop_cold_shards();
}

/// Drops decompressed shards until the limit holds, but never the one used last. Readers that hold
/// a dropped shard keep it alive until they are done.
void ShardStore::drop_cold_shards() {
    while (decompressed_bytes_ > decompressed_bytes_max_) {
        Slot* coldest = nullptr;
        std::size_t coldest_shard = 0;
        for (std::size_t shard = 0; shard < slots_.size(); ++shard) {
            Slot& slot = slots_[shard];
            const bool is_decompressed = slot.shard && slot.pinned.load() == nullptr;
            if (!is_decompressed || slot.last_use == uses_) continue;
            if (coldest && coldest->last_use <= slot.last_use) continue;
            coldest = &slot;
            coldest_shard = shard;
        }
        if (!coldest) return;
        coldest->shard.reset();
        decompressed_bytes_ -= index_.shards[coldest_shard].raw_data.bytes;
    }
}

}  // namespace tune::loader
