// Copies the samples of one batch out of their shards. When every column has a fixed size and every
// shard is mapped, a sample is one copy per column, with its bytes prefetched a few samples ahead:
// shuffled samples lie anywhere, so the wait for memory is what such a batch costs. All other
// batches go through the checks of each payload. Both ways write the same bytes, and neither shares
// state, so threads may fill several batches at once.

#include "loader/batch_decoder.h"
#include "base/text/counted.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace tune::loader {
namespace {

constexpr std::size_t kCacheLine = 64;
/// Samples whose bytes are asked for ahead of the copy, and how many lines of each: the processor
/// follows a run of bytes by itself once it has seen its beginning, but not to another sample.
constexpr std::size_t kSamplesAhead = 4;
constexpr std::size_t kLinesAhead = 16;

void prefetch(const std::byte* bytes, std::size_t size) {
    const std::size_t lines = std::min(size / kCacheLine + 1, kLinesAhead);
    for (std::size_t line = 0; line < lines; ++line)
        __builtin_prefetch(bytes + line * kCacheLine, 0, 0);
}

}  // namespace

ShardMap::ShardMap(const Index& index) {
    std::int64_t begin = 0;
    for (const ShardInfo& shard : index.shards) {
        begins_.push_back(begin);
        begin += shard.samples;
    }
    begins_.push_back(begin);
    std::uint32_t shard = 0;
    for (std::int64_t id = 0; id < begin; id += std::int64_t{1} << kBucketShift) {
        while (begins_[shard + 1] <= id) ++shard;
        bucket_shards_.push_back(shard);
    }
}

ShardMap::Place ShardMap::find(std::int64_t id) const {
    std::size_t shard = bucket_shards_[static_cast<std::size_t>(id >> kBucketShift)];
    while (begins_[shard + 1] <= id) ++shard;
    return {shard, static_cast<std::size_t>(id - begins_[shard])};
}

BatchDecoder::BatchDecoder(std::shared_ptr<ShardStore> store, ColumnSelection selection)
    : store_(std::move(store)),
      selection_(std::move(selection)),
      layout_(store_->index().shards.front().column_sizes),
      map_(store_->index()) {}

Error BatchDecoder::bad_sample(const ShardMap::Place& place) const {
    return Error{Code::kDataLoss,
                 "sample " + std::to_string(place.sample) + " does not match its columns",
                 "shard '" + store_->index().shards[place.shard].raw_data.basename + "'"};
}

Result<void> BatchDecoder::fill(std::span<const std::int64_t> ids, BatchSlot& slot) const {
    try {
        slot.ids.assign(ids.begin(), ids.end());
        for (std::size_t c = 0; c < selection_.columns.size(); ++c) {
            const ColumnInfo& column = selection_.columns[c];
            BatchSlot::ColumnBuffer& buffer = slot.columns[c];
            buffer.data.resize(ids.size() * column.sample_bytes);
            buffer.offsets.assign(column.fixed ? 0 : 1, 0);
        }
        return fill_columns(slot);
    } catch (const std::bad_alloc&) {
        return Error{
            Code::kResourceExhausted,
            "no memory for a batch of " + counted(static_cast<std::int64_t>(ids.size()), "sample")};
    }
}

Result<void> BatchDecoder::fill_columns(BatchSlot& slot) const {
    if (layout_.is_fixed()) {
        TUNE_TRY(done, fill_fixed(slot));
        if (done) return {};
    }
    return fill_any(slot);
}

/// The fast way: all columns of fixed size, all shards mapped. False when a shard is not.
Result<bool> BatchDecoder::fill_fixed(BatchSlot& slot) const {
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
        for (std::size_t c = 0; c < selection_.columns.size(); ++c) {
            const std::size_t bytes = selection_.columns[c].sample_bytes;
            std::memcpy(slot.columns[c].data.data() + i * bytes,
                        samples[i] + layout_.fixed_offset(selection_.positions[c]), bytes);
        }
    }
    return true;
}

void BatchDecoder::append_payload(std::size_t column, std::span<const std::byte> payload,
                                  std::size_t row, BatchSlot& slot) const {
    const ColumnInfo& info = selection_.columns[column];
    BatchSlot::ColumnBuffer& buffer = slot.columns[column];
    std::size_t at = row * info.sample_bytes;
    if (!info.fixed) {
        at = buffer.data.size();
        buffer.data.resize(at + payload.size());
        buffer.offsets.push_back(at + payload.size());
    }
    if (!payload.empty()) std::memcpy(buffer.data.data() + at, payload.data(), payload.size());
}

Result<void> BatchDecoder::fill_any(BatchSlot& slot) const {
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
        for (std::size_t c = 0; c < selection_.columns.size(); ++c)
            append_payload(c, payloads[selection_.positions[c]], row, slot);
    }
    return {};
}

}  // namespace tune::loader
