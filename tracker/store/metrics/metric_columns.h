#pragma once
// Values of one metric of many runs, side by side in memory: what a filter or an order over 20,000
// runs with 400 metrics each reads. In the database they lie on as many pages as there are runs.
//
// The cache holds chunks of kChunkRuns runs of consecutive rows. It is exact: a reader gets the
// values of its own snapshot or none. Who writes says before the commit and after it which series
// change (`begin_change`, `end_change`); in between, and for snapshots that began before the end,
// the chunks of these series are not used and not kept. A new run changes all its keys (kAnyKey):
// its row may have been that of a removed one. Where a run is and when it began are two columns
// more, of the key kRunItself.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/result.h"
#include "tracker/search/filter.h"
#include "tracker/sqlite/connection.h"
#include "tracker/store/metrics/metric_log.h"
#include "tracker/store/reads/read_snapshot.h"

namespace tune::tracker {

/// Runs in a chunk: 8 kB of values, read in about 1 ms.
inline constexpr std::int64_t kChunkRuns = 1'024;
/// Chunks kept, the least recently used goes: 16 MB, or 20 columns of 100,000 runs.
inline constexpr std::size_t kColumnChunksMax = 2'048;
/// Places that remember when a series changed last; several chunks share one. 128 kB.
inline constexpr std::size_t kChangePlaces = 16'384;

/// Stands for a run without the metric. What is stored is finite or NaN.
inline constexpr double kNoMetric = std::numeric_limits<double>::infinity();

/// By run row modulo kChunkRuns. The columns of kRunItself hold the bits of std::int64_t.
using MetricChunk = std::array<double, kChunkRuns>;

enum class Column {
    kLatest,
    kMin,
    kMax,
    kPlace,  // place_of(experiment, life), or kNoPlace
    kStart,  // start_time_ms
};

[[nodiscard]] Column column_of(search::Aggregate aggregate);

inline constexpr std::int64_t kNoPlace = -1;
/// One number for where a run is. `life` is 0 to 3.
[[nodiscard]] constexpr std::int64_t place_of(std::int64_t experiment_id, std::int64_t life) {
    return experiment_id * 4 + life;
}

struct ChunkKey {
    std::int64_t key_id = 0;  // of the metric, or kRunItself
    Column column = Column::kLatest;
    std::int64_t chunk = 0;  // run row / kChunkRuns
    bool operator==(const ChunkKey&) const = default;
};

/// Thread-safe. Cost of begin_change and end_change: two writes to memory per series.
class MetricColumns {
public:
    /// By the writer, before its commit and after it, whether it succeeded or not, with the same
    /// series.
    void begin_change(std::span<const SeriesKey> series);
    void end_change(std::span<const SeriesKey> series);
    /// To be read before a snapshot begins; stands for it below.
    [[nodiscard]] std::uint64_t now() const { return clock_.load(); }

    /// The chunk as it is in the snapshot `at`, or nullptr when it is not there or not certain.
    [[nodiscard]] std::shared_ptr<const MetricChunk> find(const ChunkKey& key, std::uint64_t at);
    /// Keeps what was read in the snapshot `at`, unless it changed since.
    void put(const ChunkKey& key, std::uint64_t at, std::shared_ptr<const MetricChunk> values);

private:
    static constexpr std::uint64_t kChanging = std::numeric_limits<std::uint64_t>::max();

    struct KeyHash {
        std::size_t operator()(const ChunkKey& key) const {
            return mix(key.key_id, key.chunk) * 5 + static_cast<std::size_t>(key.column);
        }
    };
    struct Entry {
        ChunkKey key;
        std::uint64_t at = 0;
        std::shared_ptr<const MetricChunk> values;
    };

    static std::size_t mix(std::int64_t key_id, std::int64_t chunk) {
        return SeriesKeyHash{}({chunk, key_id});
    }
    /// When the chunk changed last; kChanging while it does.
    [[nodiscard]] std::uint64_t changed(const ChunkKey& key) const;

    std::atomic<std::uint64_t> clock_{0};
    std::array<std::atomic<std::uint64_t>, kChangePlaces> changes_{};
    std::mutex mutex_;
    std::list<Entry> entries_;  // guarded by mutex_; most recently used first
    std::unordered_map<ChunkKey, std::list<Entry>::iterator, KeyHash> by_key_;  // guarded by mutex_
};

/// One column as a reader sees it. Not thread-safe; lives within one snapshot.
class ColumnReader {
public:
    /// `key_id` 0: no run has this metric.
    ColumnReader(const ReadSnapshot& snapshot, std::int64_t key_id, Column column)
        : snapshot_(snapshot), key_id_(key_id), column_(column) {}

    /// The run's value, NaN, or kNoMetric. Cost: some ns once the chunk is there, else kChunkRuns
    /// look-ups. REQUIRES: run_row >= 0.
    [[nodiscard]] Result<double> value(std::int64_t run_row) {
        const std::int64_t chunk = run_row / kChunkRuns;
        if (chunk != chunk_) TUNE_TRY_VOID(enter(chunk));
        return (*values_)[static_cast<std::size_t>(run_row % kChunkRuns)];
    }
    /// The values of runs chunk * kChunkRuns and on; valid until the next call.
    [[nodiscard]] Result<const MetricChunk*> values(std::int64_t chunk) {
        if (chunk != chunk_) TUNE_TRY_VOID(enter(chunk));
        return values_.get();
    }

private:
    [[nodiscard]] Result<void> enter(std::int64_t chunk);
    [[nodiscard]] Result<std::shared_ptr<const MetricChunk>> load(std::int64_t chunk);
    [[nodiscard]] Result<void> load_metric(std::int64_t chunk, MetricChunk& values);
    [[nodiscard]] Result<void> load_runs(std::int64_t chunk, MetricChunk& values);

    ReadSnapshot snapshot_;
    std::int64_t key_id_;
    Column column_;
    std::int64_t chunk_ = -1;
    std::shared_ptr<const MetricChunk> values_;
    std::unordered_map<std::int64_t, std::shared_ptr<const MetricChunk>> met_;
};

}  // namespace tune::tracker
