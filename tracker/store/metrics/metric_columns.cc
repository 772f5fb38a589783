// Why a reader never gets a value of another snapshot. The writer marks a chunk kChanging before
// its commit and with a new time after it; a reader takes its mark before its transaction. A chunk
// is used only if its last change is not later than the mark, and not later than the snapshot that
// it was read in. Places are shared by hash, which can only make a chunk look changed that is not.

#include "tracker/store/metrics/metric_columns.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

namespace tune::tracker {

Column column_of(search::Aggregate aggregate) {
    if (aggregate == search::Aggregate::kMin) return Column::kMin;
    if (aggregate == search::Aggregate::kMax) return Column::kMax;
    return Column::kLatest;
}

void MetricColumns::begin_change(std::span<const SeriesKey> series) {
    for (const SeriesKey& one : series)
        changes_[mix(one.key_id, one.run_row / kChunkRuns) % kChangePlaces].store(kChanging);
}

void MetricColumns::end_change(std::span<const SeriesKey> series) {
    const std::uint64_t now = clock_.fetch_add(1) + 1;
    for (const SeriesKey& one : series)
        changes_[mix(one.key_id, one.run_row / kChunkRuns) % kChangePlaces].store(now);
}

std::uint64_t MetricColumns::changed(const ChunkKey& key) const {
    return std::max(changes_[mix(kAnyKey, key.chunk) % kChangePlaces].load(),
                    changes_[mix(key.key_id, key.chunk) % kChangePlaces].load());
}

std::shared_ptr<const MetricChunk> MetricColumns::find(const ChunkKey& key, std::uint64_t at) {
    const std::lock_guard lock(mutex_);
    const auto known = by_key_.find(key);
    if (known == by_key_.end()) return nullptr;
    // Looked at after the entry: one that another reader put in meanwhile, from a snapshot behind
    // ours, has changed later than `at`.
    const std::uint64_t last_change = changed(key);
    if (last_change > at || known->second->at < last_change) return nullptr;
    entries_.splice(entries_.begin(), entries_, known->second);
    return known->second->values;
}

void MetricColumns::put(const ChunkKey& key, std::uint64_t at,
                        std::shared_ptr<const MetricChunk> values) {
    if (changed(key) > at) return;
    const std::lock_guard lock(mutex_);
    const auto known = by_key_.find(key);
    if (known != by_key_.end()) {
        if (known->second->at > at) return;
        known->second->at = at;
        known->second->values = std::move(values);
        entries_.splice(entries_.begin(), entries_, known->second);
        return;
    }
    entries_.push_front({key, at, std::move(values)});
    by_key_.emplace(key, entries_.begin());
    if (entries_.size() <= kColumnChunksMax) return;
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
}

Result<void> ColumnReader::enter(std::int64_t chunk) {
    std::shared_ptr<const MetricChunk>& met = met_[chunk];
    const bool is_cached = key_id_ != 0;
    const ChunkKey key{key_id_, column_, chunk};
    if (met == nullptr && is_cached) met = snapshot_.columns.find(key, snapshot_.mark);
    if (met == nullptr) {
        TUNE_TRY(loaded, load(chunk));
        met = std::move(loaded);
        if (is_cached) snapshot_.columns.put(key, snapshot_.mark, met);
    }
    values_ = met;
    chunk_ = chunk;
    return {};
}

Result<std::shared_ptr<const MetricChunk>> ColumnReader::load(std::int64_t chunk) {
    auto values = std::make_shared<MetricChunk>();
    if (key_id_ == kRunItself)
        TUNE_TRY_VOID(load_runs(chunk, *values));
    else
        TUNE_TRY_VOID(load_metric(chunk, *values));
    return std::shared_ptr<const MetricChunk>(std::move(values));
}

Result<void> ColumnReader::load_metric(std::int64_t chunk, MetricChunk& values) {
    values.fill(kNoMetric);
    if (key_id_ == 0) return {};
    const char* column = column_ == Column::kMin   ? "m.min_value"
                         : column_ == Column::kMax ? "m.max_value"
                                                   : "iif(m.is_nan, NULL, m.value)";
    // CROSS JOIN: the runs of the chunk first, then one look-up each.
    TUNE_TRY(select, snapshot_.connection.prepare(
                         std::string("SELECT r.run_row, ") + column +
                         " FROM runs r CROSS JOIN latest_metrics m ON m.run_row = r.run_row AND "
                         "m.key_id = ?1 WHERE r.run_row >= ?2 AND r.run_row < ?3"));
    select.with(key_id_, chunk * kChunkRuns, (chunk + 1) * kChunkRuns);
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return {};
        values[static_cast<std::size_t>(select.integer(0) % kChunkRuns)] =
            select.is_null(1) ? std::nan("") : select.real(1);
    }
}

Result<void> ColumnReader::load_runs(std::int64_t chunk, MetricChunk& values) {
    values.fill(std::bit_cast<double>(kNoPlace));
    TUNE_TRY(select,
             snapshot_.connection.prepare("SELECT run_row, experiment_id, life, start_time_ms FROM "
                                          "runs WHERE run_row >= ?1 AND run_row < ?2"));
    select.with(chunk * kChunkRuns, (chunk + 1) * kChunkRuns);
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return {};
        const std::int64_t value = column_ == Column::kPlace
                                       ? place_of(select.integer(1), select.integer(2))
                                       : select.integer(3);
        values[static_cast<std::size_t>(select.integer(0) % kChunkRuns)] =
            std::bit_cast<double>(value);
    }
}

}  // namespace tune::tracker
