#include "tracker/store/metrics/metric_extrema.h"

#include <cmath>
#include <optional>
#include <vector>

#include "tracker/store/metrics/metric_block.h"
#include "tracker/store/metrics/metric_log.h"

namespace tune::tracker {
namespace {

struct Extrema {
    SeriesKey key;
    double min = kNoExtremum;
    double max = kNoExtremum;
};

/// Rows read at a time, so that none is read while it is changed; about 32 bytes each.
constexpr std::int64_t kRowsAtATime = 10'000;

/// The next rows behind `after`, with the extrema of their tails.
Result<std::vector<Extrema>> read_tails(sqlite::Connection& connection, const SeriesKey& after) {
    TUNE_TRY(select, connection.prepare("SELECT run_row, key_id, tail_count, tail "
                                        "FROM latest_metrics WHERE (run_row, key_id) > (?1, ?2) "
                                        "ORDER BY run_row, key_id LIMIT ?3"));
    select.with(after.run_row, after.key_id, kRowsAtATime);
    std::vector<Extrema> rows;
    std::vector<Point> points;
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return rows;
        points.clear();
        TUNE_TRY_VOID(
            decode_points(select.blob(3), static_cast<std::size_t>(select.integer(2)), points));
        Extrema row{{select.integer(0), select.integer(1)}};
        for (const Point& point : points) {
            row.min = std::fmin(row.min, point.value);
            row.max = std::fmax(row.max, point.value);
        }
        rows.push_back(row);
    }
}

Result<void> add_blocks(sqlite::Connection& connection, Extrema& row) {
    TUNE_TRY(select, connection.prepare("SELECT min(min_value), max(max_value) FROM metric_blocks "
                                        "WHERE run_row = ? AND key_id = ?"));
    TUNE_TRY(has_row, select.with(row.key.run_row, row.key.key_id).step());
    if (!has_row || select.is_null(0)) return {};
    row.min = std::fmin(row.min, select.real(0));
    row.max = std::fmax(row.max, select.real(1));
    return {};
}

}  // namespace

Result<void> fill_extrema(sqlite::Connection& connection) {
    SeriesKey after{-1, -1};
    for (;;) {
        TUNE_TRY(rows, read_tails(connection, after));
        if (rows.empty()) return {};
        after = rows.back().key;
        for (Extrema& row : rows) {
            TUNE_TRY_VOID(add_blocks(connection, row));
            TUNE_TRY(update, connection.prepare("UPDATE latest_metrics SET min_value = ?3, "
                                                "max_value = ?4 WHERE run_row = ?1 AND "
                                                "key_id = ?2"));
            update.with(row.key.run_row, row.key.key_id, row.min, row.max);
            TUNE_TRY_VOID(update.run());
        }
    }
}

}  // namespace tune::tracker
