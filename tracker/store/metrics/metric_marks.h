#pragma once
// Marks in histories: which points came before, and which since, whatever the clocks say of those
// who logged them.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "tracker/sqlite/connection.h"
#include "tracker/store/metrics/metric_log.h"
#include "tracker/store/types.h"

namespace tune::tracker {

/// Which metrics have a mark, and their points since. Not thread-safe: belongs to the writer. After
/// any error of SQL the transaction must be rolled back and forget() called.
///
/// Memory: about 60 bytes a metric with a mark; there are as many as trials that run once more or
/// wait for it, times the metrics that decide about them.
class MetricMarks {
public:
    explicit MetricMarks(sqlite::Connection& connection) : connection_(connection) {}

    /// From now on points of these metrics of the run are noted with this mark.
    [[nodiscard]] Result<void> set(std::int64_t run_row, std::span<const std::int64_t> key_ids,
                                   std::int64_t mark);
    /// The marks of the run's metrics and the points noted with them are gone.
    [[nodiscard]] Result<void> remove(std::int64_t run_row);
    /// A point is new. The mark it came under; nothing: the metric has none. O(1) without marks.
    [[nodiscard]] Result<std::optional<std::int64_t>> note(const SeriesKey& key,
                                                           const Point& point);

    /// The next call reads the database.
    void forget() { is_loaded_ = false; }

private:
    [[nodiscard]] Result<void> load();

    sqlite::Connection& connection_;
    std::unordered_map<SeriesKey, std::int64_t, SeriesKeyHash> marks_;
    std::unordered_set<std::int64_t> runs_;  // that have one
    bool is_loaded_ = false;
};

/// The history of a metric with marks.
struct MarkedHistory {
    std::optional<std::int64_t> mark = {};  ///< the last one; nothing: there was none
    std::vector<Metric> before =
        {};  ///< the points before the first mark, ordered as every history
    struct Since {
        std::int64_t mark = 0;
        Metric metric;
    };
    std::vector<Since> since = {};  ///< the others in the order in which they came
};

/// Cost: O(points). Empty for an unknown run or metric.
[[nodiscard]] Result<MarkedHistory> marked_history(sqlite::Connection& connection,
                                                   std::string_view run_id, std::string_view key);

}  // namespace tune::tracker
