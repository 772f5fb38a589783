#pragma once
// Writing metric history. The writer keeps a "head" of each series (a metric of a run) it touched:
// latest value, newest points, and where the blocks end. Points go to the head; flush() writes
// every changed head once per transaction.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tracker/sqlite/connection.h"
#include "tracker/store/metrics/metric_block.h"

namespace tune::tracker {

/// Heads kept between transactions; about 700 bytes each.
inline constexpr std::size_t kSeriesCacheMax = 12'288;
/// Points a head may hold inside a transaction before they go to blocks.
inline constexpr std::size_t kHeadPointsMax = 512;

/// The extrema of a series without a number.
inline constexpr double kNoExtremum = std::numeric_limits<double>::quiet_NaN();

struct SeriesKey {
    std::int64_t run_row = 0;
    std::int64_t key_id = 0;
    bool operator==(const SeriesKey&) const = default;
};

/// As the key of a series: all keys of the run.
inline constexpr std::int64_t kAnyKey = -1;
/// As the key of a series: the run's own experiment, life and start time.
inline constexpr std::int64_t kRunItself = -2;

struct SeriesKeyHash {
    std::size_t operator()(const SeriesKey& key) const {
        const auto run = static_cast<std::uint64_t>(key.run_row) * 0x9e3779b97f4a7c15u;
        const auto name = static_cast<std::uint64_t>(key.key_id) * 0xc2b2ae3d27d4eb4fu;
        return static_cast<std::size_t>((run ^ (run >> 29)) + (name ^ (name >> 31)));
    }
};

class BlockCache;

/// Not thread-safe: belongs to the writer. After any error of SQL the transaction must be rolled
/// back and forget() called.
class MetricLog {
public:
    explicit MetricLog(sqlite::Connection& connection);
    ~MetricLog();

    /// Adds a point. False: it was there already. O(1) for points newer than all others of the
    /// series; else one block is read, once for points that follow each other in it.
    [[nodiscard]] Result<bool> add(SeriesKey key, const Point& point);

    /// Writes all changed heads. Before COMMIT, and before a savepoint (which then can be undone
    /// with forget()).
    [[nodiscard]] Result<void> flush();

    /// A row of `runs` is new and may have been another run's before.
    void note_new_run(std::int64_t run_row) { touched_.push_back({run_row, kAnyKey}); }
    /// The experiment, life or start time of a run changes.
    void note_changed_run(std::int64_t run_row) { touched_.push_back({run_row, kRunItself}); }
    /// The series written since the last call (more after a rollback), for MetricColumns.
    [[nodiscard]] std::vector<SeriesKey> take_touched() { return std::exchange(touched_, {}); }

    /// Drops all heads; the next add() reads the database.
    void forget();
    /// Drops the heads of runs whose rows are removed: later runs may get their numbers. REQUIRES:
    /// flush() since their last add(). Cost: one pass over the heads.
    void forget_runs(const std::unordered_set<std::int64_t>& run_rows);
    /// Drops heads if there are too many. After a commit.
    void trim();

    /// How often a block was read to see whether a late point is there already.
    [[nodiscard]] std::uint64_t late_reads() const { return late_reads_; }

private:
    struct Head {
        Point latest;          // valid if row_count > 0
        Point greatest;        // by compare_in_time, of all points; valid if row_count > 0
        Point block_greatest;  // of the points in blocks; valid if has_blocks
        double min_value = kNoExtremum;  // of all points that are not NaN
        double max_value = kNoExtremum;
        std::int64_t row_count = 0;
        std::int64_t last_block_id = 0;
        std::int64_t last_block_count = 0;
        std::optional<std::size_t> blocks_beyond_spans;  // none: not counted yet
        bool has_blocks = false;
        bool is_stored = false;
        bool is_changed = false;
        std::vector<Point> tail;
    };

    [[nodiscard]] Result<Head*> head_of(SeriesKey key);
    [[nodiscard]] Result<void> load(SeriesKey key, Head& head);
    [[nodiscard]] Result<void> load_last_block(SeriesKey key, Head& head);
    [[nodiscard]] Result<bool> is_known(SeriesKey key, const Head& head, const Point& point);
    [[nodiscard]] Result<void> store(SeriesKey key, Head& head);
    [[nodiscard]] Result<void> fold(SeriesKey key, Head& head);
    [[nodiscard]] Result<void> note_new_block(SeriesKey key, Head& head);
    [[nodiscard]] Result<void> append_to_blocks(SeriesKey key, Head& head,
                                                std::span<const Point> points);
    [[nodiscard]] Result<std::size_t> extend_last_block(Head& head, std::span<const Point> points);
    [[nodiscard]] Result<std::size_t> insert_into_blocks(SeriesKey key, Head& head,
                                                         std::span<const Point> points);

    sqlite::Connection& connection_;
    std::unordered_map<SeriesKey, Head, SeriesKeyHash> heads_;
    std::unique_ptr<BlockCache> late_blocks_;
    std::uint64_t late_reads_ = 0;
    std::vector<std::pair<SeriesKey, Head*>> changed_;
    std::vector<SeriesKey> touched_;
};

}  // namespace tune::tracker
