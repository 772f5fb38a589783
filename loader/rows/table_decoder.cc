// A batch in three steps: group its rows by shard; ask each shard for the sizes of its variable
// payloads, which add up to offsets; copy. Rows of one shard keep their order within the batch, so
// an unshuffled batch is one group of rows that follow each other.

#include "loader/rows/table_decoder.h"

#include <algorithm>
#include <new>
#include <numeric>

#include "base/text/counted.h"

namespace tune::loader {
namespace {

/// The rows of one batch that lie in one shard.
struct Group {
    std::size_t shard = 0;
    RowCopies rows = {};
    ShardCache::ShardPtr open = {};
};

class TableDecoder final : public BatchDecoder {
public:
    TableDecoder(const Catalogue& catalogue, std::size_t bytes_max, int threads_ahead,
                 ShardCache::Load load, IsHere is_here)
        : columns_(catalogue.columns),
          map_(catalogue.shard_samples),
          lookout_(map_, catalogue.shard_samples.size(), catalogue.sample_count()),
          is_here_(std::move(is_here)),
          cache_(catalogue.shard_samples.size(), bytes_max, threads_ahead, std::move(load)) {}

    [[nodiscard]] Result<void> fill(std::span<const std::int64_t> ids,
                                    BatchSlot& slot) const override {
        try {
            return fill_columns(ids, slot);
        } catch (const std::bad_alloc&) {
            return Error{Code::kResourceExhausted,
                         "no memory for a batch of " +
                             counted(static_cast<std::int64_t>(ids.size()), "sample")};
        }
    }

    void look_ahead(const EpochPlan::Rest& upcoming,
                    const EpochPlan::Rest& next_epoch) const override {
        if (cache_.threads_ahead() == 0 || cache_.is_busy_ahead()) return;
        std::vector<std::size_t> shards = lookout_.find(upcoming, next_epoch);
        if (is_here_) std::erase_if(shards, [this](std::size_t shard) { return !is_here_(shard); });
        cache_.announce(std::move(shards));
    }

private:
    [[nodiscard]] std::vector<Group> group(std::span<const std::int64_t> ids) const {
        std::vector<Group> groups;
        std::vector<std::pair<std::size_t, std::size_t>> known;  // shard -> group, sorted
        for (std::size_t i = 0, count = 0; i < ids.size(); i += count) {
            const ShardMap::Place place = map_.find(ids[i]);
            const std::size_t end =
                std::min(ids.size(), i + map_.samples(place.shard) - place.sample);
            for (count = 1; i + count < end && ids[i + count] == ids[i + count - 1] + 1;) ++count;
            const RowCopy first{static_cast<std::uint32_t>(place.sample),
                                static_cast<std::uint32_t>(i)};
            const auto at = std::lower_bound(known.begin(), known.end(),
                                             std::pair(place.shard, std::size_t{0}));
            if (at != known.end() && at->first == place.shard) {
                groups[at->second].rows.add_run(first, count);
                continue;
            }
            known.insert(at, {place.shard, groups.size()});
            groups.push_back({place.shard});
            groups.back().rows.add_run(first, count);
        }
        return groups;
    }

    [[nodiscard]] Result<void> fill_columns(std::span<const std::int64_t> ids,
                                            BatchSlot& slot) const {
        slot.ids.assign(ids.begin(), ids.end());
        std::vector<Group> groups = group(ids);
        for (Group& rows : groups) {
            TUNE_TRY(open, cache_.get(rows.shard));
            rows.open = std::move(open);
        }
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            BatchSlot::ColumnBuffer& buffer = slot.columns[c];
            buffer.valid.assign(columns_[c].has_mask ? ids.size() : 0, 1);
            make_room(c, groups, ids.size(), buffer);
            for (const Group& rows : groups) TUNE_TRY_VOID(rows.open->copy(c, rows.rows, buffer));
        }
        return {};
    }

    void make_room(std::size_t c, const std::vector<Group>& groups, std::size_t count,
                   BatchSlot::ColumnBuffer& buffer) const {
        if (columns_[c].fixed) {
            buffer.offsets.clear();
            buffer.data.resize(count * columns_[c].sample_bytes);
            return;
        }
        buffer.offsets.assign(count + 1, 0);
        const std::span<std::uint64_t> sizes = std::span(buffer.offsets).subspan(1);
        for (const Group& rows : groups) rows.open->payload_sizes(c, rows.rows, sizes);
        std::partial_sum(sizes.begin(), sizes.end(), sizes.begin());
        buffer.data.resize(buffer.offsets.back());
    }

    std::vector<ColumnInfo> columns_;
    ShardMap map_;
    const ShardLookout lookout_;
    const IsHere is_here_;
    mutable ShardCache cache_;
};

}  // namespace

std::unique_ptr<BatchDecoder> make_table_decoder(const Catalogue& catalogue, std::size_t bytes_max,
                                                 int threads_ahead, ShardCache::Load load,
                                                 IsHere is_here) {
    return std::make_unique<TableDecoder>(catalogue, bytes_max, threads_ahead, std::move(load),
                                          std::move(is_here));
}

void decode_shards(const DatasetOptions& options, CachedSource* cache,
                   const std::function<UnitNeeds()>& needs, ShardCache::Load load, RowSet& rows) {
    IsHere is_here;
    if (cache) {
        const auto kept = std::make_shared<const UnitNeeds>(needs());
        // The source lives as long as `load`, which reads from it.
        is_here = [cache, kept](std::size_t shard) { return cache->has(kept->of_group(shard)); };
        rows.supply = cache->supply(*kept);
    }
    rows.decoder = make_table_decoder(rows.catalogue, options.decompressed_bytes_max,
                                      options.threads, std::move(load), std::move(is_here));
}

}  // namespace tune::loader
