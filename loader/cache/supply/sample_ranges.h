#pragma once
// Samples of MDS shards by themselves, before their shards have come. Internal to the loader.

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "loader/cache/supply/batch_needs.h"
#include "loader/cache/supply/sparse_shard.h"
#include "loader/source/range_reader.h"
#include "loader/source/shard_store.h"

namespace tune::loader {

/// Keeps what was read of a shard until drop(). Not thread-safe, but for fetch().
class SampleRanges {
public:
    /// `source_of(shard)` must outlive this object.
    SampleRanges(std::shared_ptr<ShardStore> store,
                 std::function<const ObjectSource&(std::size_t shard)> source_of)
        : store_(std::move(store)), source_of_(std::move(source_of)) {}

    struct Need {
        std::size_t shard = 0;
        std::shared_ptr<SparseShard> sparse = {};
        std::vector<std::uint32_t> samples = {};
    };
    /// Whether every shard can be read sample by sample: none is compressed.
    [[nodiscard]] bool is_possible() const;

    /// Memory for samples of these shards. Errors: those of SparseShard::make.
    [[nodiscard]] Result<std::vector<Need>> prepare(const BatchNeeds::ByGroup& samples);
    /// Reads them; the bytes that were moved. Any thread. Errors: those of the source; kDataLoss
    /// for offsets that lead out of a shard.
    [[nodiscard]] Result<std::uint64_t> fetch(const std::vector<Need>& needs,
                                              RangeReader& reader) const;
    /// Makes them readable.
    void put(const Need& need) const { store_->put(need.shard, need.sparse->shard(), false); }
    void drop(std::size_t shard) { shards_.erase(shard); }

private:
    const std::shared_ptr<ShardStore> store_;
    const std::function<const ObjectSource&(std::size_t shard)> source_of_;
    std::map<std::size_t, std::shared_ptr<SparseShard>> shards_;
};

}  // namespace tune::loader
