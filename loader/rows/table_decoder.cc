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

/// The order ahead is looked at in places a part of a usual shard apart, so that the search costs
/// little and finds every shard of which many samples come.
constexpr std::size_t kLooksPerShard = 8;
constexpr std::size_t kLooksMax = 256;

/// The rows of one batch that lie in one shard.
struct Group {
    std::size_t shard = 0;
    RowCopies rows = {};
    ShardCache::ShardPtr open = {};
};

class TableDecoder final : public BatchDecoder {
public:
    TableDecoder(const Catalogue& catalogue, std::size_t bytes_max, int threads_ahead,
                 ShardCache::Load load)
        : columns_(catalogue.columns),
          map_(catalogue.shard_samples),
          shard_count_(catalogue.shard_samples.size()),
          stride_(1 + static_cast<std::size_t>(catalogue.sample_count()) /
                          (kLooksPerShard * catalogue.shard_samples.size())),
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

    void look_ahead(std::span<const std::int64_t> upcoming,
                    std::span<const std::int64_t> next_epoch) const override {
        if (cache_.threads_ahead() == 0 || cache_.is_busy_ahead()) return;
        std::vector<std::size_t> shards;
        std::vector<bool> is_found(shard_count_);
        std::size_t looks = 0;
        for (const std::span<const std::int64_t> ids : {upcoming, next_epoch})
            for (std::size_t i = 0; i < ids.size() && looks < kLooksMax; i += stride_, ++looks) {
                if (ids[i] < 0) continue;
                const std::size_t shard = map_.find(ids[i]).shard;
                if (is_found[shard]) continue;
                is_found[shard] = true;
                shards.push_back(shard);
            }
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
    const std::size_t shard_count_;
    const std::size_t stride_;
    mutable ShardCache cache_;
};

}  // namespace

std::unique_ptr<BatchDecoder> make_table_decoder(const Catalogue& catalogue, std::size_t bytes_max,
                                                 int threads_ahead, ShardCache::Load load) {
    return std::make_unique<TableDecoder>(catalogue, bytes_max, threads_ahead, std::move(load));
}

}  // namespace tune::loader
