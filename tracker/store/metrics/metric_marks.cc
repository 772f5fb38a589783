// A history is ordered by the clocks of those who log; what came since a mark is noted once more,
// in the order in which it came, and what came before is the history without what was noted. So
// only metrics with a mark cost more, and a mark that is removed leaves nothing behind. The marks
// are kept in memory as the open transaction has them: after a rollback they are read again.

#include "tracker/store/metrics/metric_marks.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "tracker/store/metrics/read_metrics.h"

namespace tune::tracker {

Result<void> MetricMarks::load() {
    if (is_loaded_) return {};
    marks_.clear();
    runs_.clear();
    TUNE_TRY(select, connection_.prepare("SELECT run_row, key_id, mark FROM metric_marks"));
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) break;
        marks_[{select.integer(0), select.integer(1)}] = select.integer(2);
        runs_.insert(select.integer(0));
    }
    is_loaded_ = true;
    return {};
}

Result<void> MetricMarks::set(std::int64_t run_row, std::span<const std::int64_t> key_ids,
                              std::int64_t mark) {
    TUNE_TRY_VOID(load());
    for (const std::int64_t key_id : key_ids) {
        const auto known = marks_.find({run_row, key_id});
        if (known != marks_.end() && known->second == mark) continue;
        TUNE_TRY(put, connection_.prepare("INSERT INTO metric_marks VALUES (?, ?, ?) ON CONFLICT "
                                          "DO UPDATE SET mark = excluded.mark"));
        TUNE_TRY_VOID(put.with(run_row, key_id, mark).run());
        marks_[{run_row, key_id}] = mark;
    }
    runs_.insert(run_row);
    return {};
}

Result<void> MetricMarks::remove(std::int64_t run_row) {
    TUNE_TRY_VOID(load());
    if (runs_.erase(run_row) == 0) return {};
    for (const char* sql : {"DELETE FROM metric_marks WHERE run_row = ?",
                            "DELETE FROM marked_points WHERE run_row = ?"}) {
        TUNE_TRY(erase, connection_.prepare(sql));
        TUNE_TRY_VOID(erase.with(run_row).run());
    }
    std::erase_if(marks_, [run_row](const auto& entry) { return entry.first.run_row == run_row; });
    return {};
}

Result<std::optional<std::int64_t>> MetricMarks::note(const SeriesKey& key, const Point& point) {
    TUNE_TRY_VOID(load());
    if (marks_.empty()) return std::optional<std::int64_t>();
    const auto found = marks_.find(key);
    if (found == marks_.end()) return std::optional<std::int64_t>();
    TUNE_TRY(insert, connection_.prepare("INSERT INTO marked_points (run_row, key_id, mark, "
                                         "timestamp_ms, step, value) VALUES (?, ?, ?, ?, ?, ?)"));
    // NaN becomes NULL.
    TUNE_TRY_VOID(insert
                      .with(key.run_row, key.key_id, found->second, point.timestamp_ms, point.step,
                            point.value)
                      .run());
    return std::optional(found->second);
}

Result<MarkedHistory> marked_history(sqlite::Connection& connection, std::string_view run_id,
                                     std::string_view key) {
    MarkedHistory found;
    TUNE_TRY(series, find_series(connection, run_id, key));
    if (series.run_row == 0) return found;
    {
        TUNE_TRY(mark, connection.prepare("SELECT mark FROM metric_marks WHERE run_row = ? AND "
                                          "key_id = ?"));
        TUNE_TRY(has_mark, mark.with(series.run_row, series.key_id).step());
        if (has_mark) found.mark = mark.integer(0);
    }
    TUNE_TRY(history, metric_history(connection, run_id, key, {}, {}));
    TUNE_TRY(select, connection.prepare("SELECT mark, timestamp_ms, step, value FROM marked_points "
                                        "WHERE run_row = ? AND key_id = ? ORDER BY point_row"));
    select.with(series.run_row, series.key_id);
    const auto point_of = [](const Metric& metric) {
        return Point{metric.timestamp_ms, metric.step, metric.value};
    };
    std::vector<Point> noted;
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) break;
        const Point point{select.integer(1), select.integer(2),
                          select.is_null(3) ? std::nan("") : select.real(3)};
        noted.push_back(point);
        Metric metric;
        metric.key = key;
        metric.value = point.value;
        metric.timestamp_ms = point.timestamp_ms;
        metric.step = point.step;
        found.since.push_back({select.integer(0), std::move(metric)});
    }
    std::sort(noted.begin(), noted.end(), is_before);
    for (Metric& metric : history.items)
        if (!std::binary_search(noted.begin(), noted.end(), point_of(metric), is_before))
            found.before.push_back(std::move(metric));
    return found;
}

}  // namespace tune::tracker
