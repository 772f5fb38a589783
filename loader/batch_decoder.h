#pragma once
// Copies samples out of shards into the columns of a batch. Internal to the loader.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "loader/batch_slot.h"
#include "loader/format/mds/shard.h"
#include "loader/source/shard_store.h"

namespace tune::loader {

/// Sample number -> shard and number within it.
class ShardMap {
public:
    explicit ShardMap(const Index& index);

    struct Place {
        std::size_t shard = 0;
        std::size_t sample = 0;
    };
    /// REQUIRES: 0 <= id < number of samples. O(1) for shards of like size.
    [[nodiscard]] Place find(std::int64_t id) const;

private:
    static constexpr int kBucketShift = 10;
    std::vector<std::int64_t> begins_;          // of each shard, and the end
    std::vector<std::uint32_t> bucket_shards_;  // the shard of each 1,024th sample
};

/// What is read of each sample.
struct ColumnSelection {
    std::vector<ColumnInfo> columns;
    /// Where each one stands among the columns of the shards.
    std::vector<std::size_t> positions;
};

/// Immutable after construction; fill may run on many threads at once.
class BatchDecoder {
public:
    BatchDecoder(std::shared_ptr<ShardStore> store, ColumnSelection selection);

    /// Reads the samples `ids` into `slot`. Errors: those of ShardStore::get; kDataLoss when a
    /// sample does not match its columns, naming shard and sample; kResourceExhausted without
    /// memory.
    [[nodiscard]] Result<void> fill(std::span<const std::int64_t> ids, BatchSlot& slot) const;

private:
    [[nodiscard]] Result<void> fill_columns(BatchSlot& slot) const;
    [[nodiscard]] Result<bool> fill_fixed(BatchSlot& slot) const;
    [[nodiscard]] Result<void> fill_any(BatchSlot& slot) const;
    void append_payload(std::size_t column, std::span<const std::byte> payload, std::size_t row,
                        BatchSlot& slot) const;
    [[nodiscard]] Error bad_sample(const ShardMap::Place& place) const;

    std::shared_ptr<ShardStore> store_;
    ColumnSelection selection_;
    SampleLayout layout_;
    ShardMap map_;
};

}  // namespace tune::loader
