// Pieces are known by their summaries; a read opens only those whose points it needs. Blocks are in
// the order of time, with the tail woven in. Reads by step want another order: pieces that follow
// each other in steps are sorted one by one, and only those whose ranges of steps overlap are read
// together.

#include "tracker/store/metrics/metric_series.h"

#include <algorithm>
#include <cmath>

#include "tracker/store/metrics/metric_table.h"
#include "tracker/store/metrics/read_metrics.h"

namespace tune::tracker {
namespace {

bool is_before_in_steps(const Point& a, const Point& b) {
    return compare_in_steps(a, b) < 0;
}

/// The first point of the block that holds `after`, from which blocks must be read.
Result<Point> start_of_block_holding(sqlite::Connection& connection, const SeriesKey& key,
                                     const Point& after) {
    TUNE_TRY(select,
             connection.prepare("SELECT first_timestamp_ms, first_step, first_value, first_is_nan "
                                "FROM metric_blocks WHERE run_row = ?1 AND key_id = ?2 AND "
                                "(first_timestamp_ms, first_step, first_value, first_is_nan) <= "
                                "(?3, ?4, ?5, ?6) ORDER BY first_timestamp_ms DESC, first_step "
                                "DESC, first_value DESC, first_is_nan DESC LIMIT 1"));
    const bool is_nan = std::isnan(after.value);
    select.with(key.run_row, key.key_id, after.timestamp_ms, after.step, is_nan ? 0 : after.value,
                std::int64_t{is_nan});
    TUNE_TRY(has_row, select.step());
    if (!has_row) return after;
    return Point{select.integer(0), select.integer(1),
                 select.integer(3) != 0 ? std::nan("") : select.real(2)};
}

/// Visits blocks from `start` on, weaving in the points of the tail.
class Walk {
public:
    Walk(const std::optional<Point>& after, const std::function<bool(const Point&)>& visit,
         std::vector<Point> tail)
        : after_(after), visit_(visit), tail_(std::move(tail)) {}

    /// False: the visitor has enough.
    bool visit_block(const std::vector<Point>& points) {
        for (const Point& point : points) {
            while (tail_at_ < tail_.size() && is_before(tail_[tail_at_], point))
                if (!offer(tail_[tail_at_++])) return false;
            if (!offer(point)) return false;
        }
        return true;
    }

    void visit_rest() {
        while (tail_at_ < tail_.size() && offer(tail_[tail_at_])) ++tail_at_;
    }

private:
    bool offer(const Point& point) {
        if (after_ && !is_before(*after_, point)) return true;
        return visit_(point);
    }

    const std::optional<Point>& after_;
    const std::function<bool(const Point&)>& visit_;
    std::vector<Point> tail_;
    std::size_t tail_at_ = 0;
};

}  // namespace

Result<void> for_each_point(sqlite::Connection& connection, const SeriesKey& key,
                            const std::optional<Point>& after,
                            const std::function<bool(const Point&)>& visit) {
    TUNE_TRY(tail, read_tail(connection, key));
    Walk walk(after, visit, std::move(tail));
    Point start{INT64_MIN, INT64_MIN, 0};
    if (after) {
        TUNE_TRY(found, start_of_block_holding(connection, key, *after));
        start = found;
    }
    TUNE_TRY(select,
             connection.prepare("SELECT row_count, points FROM metric_blocks WHERE run_row = ?1 "
                                "AND key_id = ?2 AND (first_timestamp_ms, first_step, first_value, "
                                "first_is_nan) >= (?3, ?4, ?5, ?6) ORDER BY first_timestamp_ms, "
                                "first_step, first_value, first_is_nan"));
    const bool is_nan = std::isnan(start.value);
    select.with(key.run_row, key.key_id, start.timestamp_ms, start.step, is_nan ? 0 : start.value,
                std::int64_t{is_nan});
    std::vector<Point> points;
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) break;
        points.clear();
        TUNE_TRY_VOID(
            decode_points(select.blob(1), static_cast<std::size_t>(select.integer(0)), points));
        if (!walk.visit_block(points)) return {};
    }
    walk.visit_rest();
    return {};
}

Result<MetricSeries> MetricSeries::open(sqlite::Connection& connection, const SeriesKey& key) {
    MetricSeries series;
    TUNE_TRY_VOID(for_each_piece(connection, key,
                                 [&series](const SeriesPiece& piece) { series.add(piece); }));
    TUNE_TRY(tail, read_tail(connection, key));
    series.tail_ = std::move(tail);
    if (!series.tail_.empty())
        series.add({0, series.tail_.front().timestamp_ms, series.tail_.back().timestamp_ms,
                    summarize(series.tail_)});
    return series;
}

void MetricSeries::add(const SeriesPiece& piece) {
    const bool is_first = pieces_.empty();
    min_step_ = is_first ? piece.summary.min_step : std::min(min_step_, piece.summary.min_step);
    max_step_ = is_first ? piece.summary.max_step : std::max(max_step_, piece.summary.max_step);
    first_ms_ = is_first ? piece.first_ms : std::min(first_ms_, piece.first_ms);
    last_ms_ = is_first ? piece.last_ms : std::max(last_ms_, piece.last_ms);
    row_count_ += piece.summary.row_count;
    pieces_.push_back(piece);
}

Result<std::vector<Point>> MetricSeries::points_of(sqlite::Connection& connection,
                                                   const SeriesPiece& piece) const {
    std::vector<Point> points;
    TUNE_TRY_VOID(read_points(connection, piece, points));
    return points;
}

Result<void> MetricSeries::read_points(sqlite::Connection& connection, const SeriesPiece& piece,
                                       std::vector<Point>& points) const {
    if (piece.block_id == 0) {
        points = tail_;
        return {};
    }
    points.clear();
    TUNE_TRY(select,
             connection.prepare("SELECT row_count, points FROM metric_blocks WHERE block_id = ?"));
    TUNE_TRY(has_row, select.with(piece.block_id).step());
    if (!has_row) return Error{Code::kDataLoss, "A block of metric history is missing."};
    return decode_points(select.blob(1), static_cast<std::size_t>(select.integer(0)), points);
}

Result<std::vector<Point>> MetricSeries::all_points(sqlite::Connection& connection) const {
    std::vector<Point> all;
    all.reserve(static_cast<std::size_t>(row_count_));
    for (const SeriesPiece& piece : pieces_) {
        TUNE_TRY(points, points_of(connection, piece));
        all.insert(all.end(), points.begin(), points.end());
    }
    return all;
}

/// Pieces follow each other in the order of steps, so that sorting each sorts all. Points of one
/// step on both sides of a border are in the order of time, as the pieces are.
bool MetricSeries::is_in_step_order() const {
    for (std::size_t i = 1; i < pieces_.size(); ++i) {
        const SeriesPiece& before = pieces_[i - 1];
        if (before.summary.max_step > pieces_[i].summary.min_step) return false;
        if (before.last_ms > pieces_[i].first_ms) return false;
    }
    return true;
}

Result<std::vector<Point>> MetricSeries::points_within(sqlite::Connection& connection,
                                                       const SeriesPiece& piece,
                                                       const StepRange& range) const {
    TUNE_TRY(points, points_of(connection, piece));
    std::erase_if(points, [&](const Point& point) {
        return point.step < range.first || point.step > range.last;
    });
    if (!std::is_sorted(points.begin(), points.end(), is_before_in_steps))
        std::sort(points.begin(), points.end(), is_before_in_steps);
    return points;
}

/// The points of `range` as groups that follow each other in the order of steps. Whole pieces are
/// not read yet.
Result<std::vector<MetricSeries::Group>> MetricSeries::groups_within(sqlite::Connection& connection,
                                                                     const StepRange& range) const {
    const bool is_ordered = is_in_step_order();
    std::vector<Group> groups;
    for (const SeriesPiece& piece : pieces_) {
        const BlockSummary& summary = piece.summary;
        if (summary.max_step < range.first || summary.min_step > range.last) continue;
        Group group{&piece, summary.row_count, {}};
        if (!is_ordered || summary.min_step < range.first || summary.max_step > range.last) {
            TUNE_TRY(points, points_within(connection, piece, range));
            group = {nullptr, static_cast<std::int64_t>(points.size()), std::move(points)};
        }
        groups.push_back(std::move(group));
    }
    if (is_ordered || groups.empty()) return groups;
    Group all{nullptr, 0, {}};
    for (const Group& group : groups)
        all.points.insert(all.points.end(), group.points.begin(), group.points.end());
    std::sort(all.points.begin(), all.points.end(), is_before_in_steps);
    all.count = static_cast<std::int64_t>(all.points.size());
    groups.clear();
    groups.push_back(std::move(all));
    return groups;
}

Result<std::vector<Point>> MetricSeries::sample_in_steps(sqlite::Connection& connection,
                                                         const std::optional<StepRange>& range,
                                                         std::int64_t max_results) const {
    const StepRange steps = range.value_or(StepRange{INT64_MIN, INT64_MAX});
    TUNE_TRY(groups, groups_within(connection, steps));
    std::int64_t total = 0;
    for (const Group& group : groups) total += group.count;
    std::vector<Point> sample;
    std::size_t at = 0;
    std::int64_t passed = 0;
    for (const std::int64_t position : sample_positions(total, max_results)) {
        while (position - passed >= groups[at].count) {
            passed += groups[at].count;
            groups[at].points = {};
            ++at;
        }
        Group& group = groups[at];
        if (group.points.empty()) {
            TUNE_TRY(points, points_within(connection, *group.piece, steps));
            group.points = std::move(points);
        }
        sample.push_back(group.points[static_cast<std::size_t>(position - passed)]);
    }
    return sample;
}

}  // namespace tune::tracker
