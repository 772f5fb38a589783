// Copies the samples of one batch out of their shards. When every column has a fixed size and every
// shard is mapped, a sample is one copy per column, with its bytes prefetched a few samples ahead:
// shuffled samples lie anywhere, so the wait for memory is what such a batch costs. All other
// batches go through the checks of each payload. Both ways write the same bytes, and neither shares
// state, so threads may fill several batches at once.

#include "loader/rows/mds_rows.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "base/text/counted.h"
#include "loader/format/compression.h"
#include "loader/format/mds/encoding.h"
#include "loader/format/mds/index.h"
#include "loader/source/shard_opener.h"

namespace tune::loader {
namespace {

constexpr std::size_t kCacheLine = 64;
/// Samples whose bytes are asked for ahead of the copy, and how many lines of each: the processor
/// follows a run of bytes by itself once it has seen its beginning, but not to another sample.
constexpr std::size_t kSamplesAhead = 4;
constexpr std::size_t kLinesAhead = 16;
/// Batches after which the order ahead is looked at again.
constexpr std::size_t kBatchesPerLook = 4;

void prefetch(const std::byte* bytes, std::size_t size) {
    const std::size_t lines = std::min(size / kCacheLine + 1, kLinesAhead);
    for (std::size_t line = 0; line < lines; ++line)
        __builtin_prefetch(bytes + line * kCacheLine, 0, 0);
}

/// One column that is read.
struct SelectedColumn {
    /// Among the columns of the shards.
    std::size_t position = 0;
    bool is_fixed = true;
    std::size_t stored_bytes = 0;
    std::size_t sample_bytes = 0;
    std::size_t elements = 0;
    /// nullptr: given out as it is stored.
    ConvertElements convert = nullptr;
};

class MdsDecoder final : public BatchDecoder {
public:
    /// `opening_threads`: that open shards ahead; 0: each is opened by the batch that needs it.
    MdsDecoder(std::shared_ptr<ShardStore> store, std::vector<SelectedColumn> columns,
               const Catalogue& catalogue, int opening_threads)
        : store_(std::move(store)),
          columns_(std::move(columns)),
          layout_(store_->index().shards.front().column_sizes),
          map_(catalogue.shard_samples),
          lookout_(map_, catalogue.shard_samples.size(), catalogue.sample_count()) {
        if (opening_threads > 0) opener_ = std::make_unique<ShardOpener>(store_, opening_threads);
        copies_ = std::none_of(columns_.begin(), columns_.end(),
                               [](const SelectedColumn& column) { return column.convert; });
    }

    [[nodiscard]] Result<void> fill(std::span<const std::int64_t> ids,
                                    BatchSlot& slot) const override;

    void look_ahead(const EpochPlan::Rest& upcoming,
                    const EpochPlan::Rest& next_epoch) const override {
        // Most batches find everything open: they do not pay for a search.
        if (!opener_ || batches_.fetch_add(1, std::memory_order_relaxed) % kBatchesPerLook != 0)
            return;
        if (!opener_->is_busy()) opener_->announce(lookout_.find(upcoming, next_epoch));
    }

    [[nodiscard]] DecoderTimes times() const override {
        return {.decompress_s = store_->decompress_s()};
    }

private:
    [[nodiscard]] Result<bool> fill_fixed(BatchSlot& slot) const;
    [[nodiscard]] Result<void> fill_any(BatchSlot& slot) const;
    static void append_payload(const SelectedColumn& column, std::span<const std::byte> payload,
                               std::size_t row, BatchSlot::ColumnBuffer& buffer);
    [[nodiscard]] Error bad_sample(const ShardMap::Place& place) const;

    std::shared_ptr<ShardStore> store_;
    std::vector<SelectedColumn> columns_;
    SampleLayout layout_;
    ShardMap map_;
    const ShardLookout lookout_;
    mutable std::atomic<std::size_t> batches_ = 0;
    bool copies_ = true;                   // no column is converted
    std::unique_ptr<ShardOpener> opener_;  // last: its threads use the store
};

Error MdsDecoder::bad_sample(const ShardMap::Place& place) const {
    return Error{Code::kDataLoss,
                 "sample " + std::to_string(place.sample) + " does not match its columns",
                 "shard '" + store_->index().shards[place.shard].raw_data.basename + "'"};
}

Result<void> MdsDecoder::fill(std::span<const std::int64_t> ids, BatchSlot& slot) const {
    try {
        slot.ids.assign(ids.begin(), ids.end());
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            BatchSlot::ColumnBuffer& buffer = slot.columns[c];
            buffer.data.resize(ids.size() * columns_[c].sample_bytes);
            buffer.offsets.assign(columns_[c].is_fixed ? 0 : 1, 0);
        }
        if (copies_ && layout_.is_fixed()) {
            TUNE_TRY(done, fill_fixed(slot));
            if (done) return {};
        }
        return fill_any(slot);
    } catch (const std::bad_alloc&) {
        return Error{
            Code::kResourceExhausted,
            "no memory for a batch of " + counted(static_cast<std::int64_t>(ids.size()), "sample")};
    }
}

/// The fast way: all columns of fixed size, all shards mapped. False when a shard is not.
Result<bool> MdsDecoder::fill_fixed(BatchSlot& slot) const {
    struct Source {
        const Shard* shard;
        ShardMap::Place place;
    };
    thread_local std::vector<Source> sources;
    thread_local std::vector<const std::byte*> samples;
    const std::size_t count = slot.ids.size();
    sources.resize(count);
    samples.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
        const ShardMap::Place place = map_.find(slot.ids[i]);
        const Shard* shard = store_->open_shard(place.shard);
        if (!shard) {
            TUNE_TRY_VOID(store_->get(place.shard));
            shard = store_->open_shard(place.shard);
            if (!shard) return false;
        }
        __builtin_prefetch(shard->offset_of(place.sample), 0, 0);
        sources[i] = {shard, place};
    }
    const std::size_t sample_bytes = layout_.bytes_min();
    for (std::size_t i = 0; i < count; ++i) {
        const std::span<const std::byte> sample = sources[i].shard->sample(sources[i].place.sample);
        if (sample.size() != sample_bytes) return bad_sample(sources[i].place);
        samples[i] = sample.data();
        if (i < kSamplesAhead) prefetch(samples[i], sample_bytes);
    }
    for (std::size_t i = 0; i < count; ++i) {
        if (i + kSamplesAhead < count) prefetch(samples[i + kSamplesAhead], sample_bytes);
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            const std::size_t bytes = columns_[c].sample_bytes;
            std::memcpy(slot.columns[c].data.data() + i * bytes,
                        samples[i] + layout_.fixed_offset(columns_[c].position), bytes);
        }
    }
    return true;
}

void MdsDecoder::append_payload(const SelectedColumn& column, std::span<const std::byte> payload,
                                std::size_t row, BatchSlot::ColumnBuffer& buffer) {
    std::size_t at = row * column.sample_bytes;
    if (!column.is_fixed) {
        at = buffer.data.size();
        buffer.data.resize(at + payload.size());
        buffer.offsets.push_back(at + payload.size());
    }
    if (column.convert)
        column.convert(payload.data(), buffer.data.data() + at, column.elements);
    else if (!payload.empty())
        std::memcpy(buffer.data.data() + at, payload.data(), payload.size());
}

Result<void> MdsDecoder::fill_any(BatchSlot& slot) const {
    std::vector<std::span<const std::byte>> payloads(layout_.column_count());
    std::shared_ptr<const Shard> held;
    for (std::size_t row = 0; row < slot.ids.size(); ++row) {
        const ShardMap::Place place = map_.find(slot.ids[row]);
        const Shard* shard = store_->open_shard(place.shard);
        if (!shard) {
            TUNE_TRY(opened, store_->get(place.shard));
            held = std::move(opened);
            shard = held.get();
        }
        if (!layout_.split(shard->sample(place.sample), payloads)) return bad_sample(place);
        for (std::size_t c = 0; c < columns_.size(); ++c)
            append_payload(columns_[c], payloads[columns_[c].position], row, slot.columns[c]);
    }
    return {};
}

Result<ColumnInfo> column_info(const ShardInfo& shard, std::size_t position) {
    TUNE_TRY(encoding, parse_encoding(shard.column_encodings[position]));
    ColumnInfo column{.name = shard.column_names[position], .encoding = encoding.name};
    column.fixed = encoding.size.has_value();
    column.sample_bytes = encoding.size.value_or(0);
    if (column.fixed) column.dtype = *encoding.dtype;
    if (encoding.shape) column.shape = *encoding.shape;
    return column;
}

}  // namespace

Result<RowSet> open_mds(const DatasetOptions& options, StreamSet set) {
    TUNE_TRY_VOID(refuse_table_options(options, "MDS"));
    Index& index = set.index;
    const ShardInfo& first = index.shards.front();
    TUNE_TRY_VOID(check_names(options, first.column_names));
    RowSet rows;
    rows.catalogue.format = "mds";
    rows.catalogue.digest = std::move(set.digest);
    rows.streams = std::move(set.streams);
    std::vector<SelectedColumn> selected;
    for (std::size_t position = 0; position < first.column_names.size(); ++position) {
        if (!is_wanted(options, first.column_names[position])) continue;
        TUNE_TRY(column, column_info(first, position));
        SelectedColumn read{position, column.fixed, column.sample_bytes};
        const Dtype stored = column.dtype;
        if (column.fixed) read.elements = column.sample_bytes / dtype_bytes(stored);
        TUNE_TRY_VOID(apply_dtype(options_of(options, column.name), column));
        if (column.dtype != stored) read.convert = converter(stored, column.dtype);
        read.sample_bytes = column.sample_bytes;
        selected.push_back(read);
        rows.catalogue.columns.push_back(std::move(column));
    }
    for (const ShardInfo& shard : index.shards) {
        rows.catalogue.shard_samples.push_back(shard.samples);
        const FileInfo& file = shard.zip_data ? *shard.zip_data : shard.raw_data;
        rows.catalogue.shard_names.push_back(file.basename);
        rows.catalogue.bytes += file.bytes;
    }
    rows.supply = std::move(set.supply);
    std::shared_ptr<ShardStore> store = std::move(set.store);
    if (!store)
        store = std::make_shared<ShardStore>(std::move(set.directory), std::move(index),
                                             options.verify == Verify::kHashes,
                                             options.decompressed_bytes_max);
    // What lies elsewhere is brought here, and opened, by the supply.
    const int opening_threads = rows.supply ? 0 : options.threads;
    rows.decoder = std::make_unique<MdsDecoder>(std::move(store), std::move(selected),
                                                rows.catalogue, opening_threads);
    return rows;
}

}  // namespace tune::loader
