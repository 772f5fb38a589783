// Buckets of a chart are exact although most blocks are never opened: a block that lies within one
// bucket adds its summary (minimum, maximum, last value, counts), and only blocks on a border of
// buckets or of the window are decoded. Summaries merge associatively, so the order of pieces does
// not matter. Pages of a history are keyset pages: the token is the last point, not an offset.

#include "tracker/store/metrics/read_metrics.h"

#include <algorithm>
#include <cmath>

#include "tracker/search/page_token.h"
#include "tracker/store/metrics/metric_log.h"
#include "tracker/store/metrics/metric_series.h"
#include "tracker/store/metrics/metric_table.h"
#include "tracker/store/reads/runs/read_runs.h"

namespace tune::tracker {
namespace {

Metric to_metric(std::string_view key, const Point& point) {
    Metric metric;
    metric.key = key;
    metric.value = point.value;
    metric.timestamp_ms = point.timestamp_ms;
    metric.step = point.step;
    return metric;
}

std::uint64_t history_fingerprint(std::string_view run_id, std::string_view key) {
    return search::query_fingerprint("history\x1f" + std::string(run_id) + "\x1f" +
                                     std::string(key));
}

std::string history_token(std::uint64_t fingerprint, const Point& last) {
    search::TokenValue value;
    if (!std::isnan(last.value)) value = last.value;
    return search::make_page_token(fingerprint, {last.timestamp_ms, last.step, value});
}

Result<Point> read_history_token(std::uint64_t fingerprint, std::string_view token) {
    TUNE_TRY(values, search::read_page_token(fingerprint, token, 3));
    const auto* timestamp_ms = std::get_if<std::int64_t>(&values[0]);
    const auto* step = std::get_if<std::int64_t>(&values[1]);
    if (timestamp_ms == nullptr || step == nullptr)
        return invalid_parameter("Invalid page token, it was damaged");
    Point point{*timestamp_ms, *step, std::nan("")};
    if (const auto* real = std::get_if<double>(&values[2])) point.value = *real;
    if (const auto* whole = std::get_if<std::int64_t>(&values[2]))
        point.value = static_cast<double>(*whole);
    return point;
}

Result<void> check_runs(std::span<const std::string> run_ids) {
    if (run_ids.size() <= kBulkRunsMax) return {};
    return invalid_parameter("GetMetricHistoryBulk request cannot specify more than " +
                             std::to_string(kBulkRunsMax) + " run_ids. Received " +
                             std::to_string(run_ids.size()) + " run_ids.");
}

/// Buckets of equal width over steps, or over time when all points share one step.
class Bucketer {
public:
    Bucketer(std::int64_t first, std::int64_t last, std::int64_t count)
        : first_(first),
          width_(static_cast<double>(last) - static_cast<double>(first)),
          buckets_(static_cast<std::size_t>(count)) {}

    std::size_t index_of(std::int64_t position) const {
        const double offset = static_cast<double>(position) - static_cast<double>(first_);
        const double share = width_ > 0 ? offset / width_ : 0;
        const auto count = static_cast<double>(buckets_.size());
        return std::min(static_cast<std::size_t>(share * count), buckets_.size() - 1);
    }

    void add(std::size_t index, const BlockSummary& summary, std::int64_t first_ms,
             std::int64_t last_ms) {
        Bucket& bucket = buckets_[index];
        const bool is_new = bucket.summary.row_count == 0;
        bucket.first_ms = is_new ? first_ms : std::min(bucket.first_ms, first_ms);
        bucket.last_ms = is_new ? last_ms : std::max(bucket.last_ms, last_ms);
        bucket.summary = merge(bucket.summary, summary);
    }

    std::vector<SeriesBucket> take() const {
        std::vector<SeriesBucket> out;
        for (const Bucket& bucket : buckets_) {
            const BlockSummary& summary = bucket.summary;
            if (summary.row_count == 0) continue;
            out.push_back({summary.min_step, summary.max_step, bucket.first_ms, bucket.last_ms,
                           summary.min_value, summary.max_value, summary.final.value,
                           summary.row_count, summary.nan_count});
        }
        return out;
    }

private:
    struct Bucket {
        BlockSummary summary;
        std::int64_t first_ms = 0;
        std::int64_t last_ms = 0;
    };
    std::int64_t first_;
    double width_;
    std::vector<Bucket> buckets_;
};

SeriesBucket bucket_of(const Point& point) {
    const bool is_nan = std::isnan(point.value);
    return {point.step,         point.step,  point.timestamp_ms,
            point.timestamp_ms, point.value, point.value,
            point.value,        1,           is_nan ? 1 : 0};
}

/// Where pieces and points lie on the axis of a window.
struct Axis {
    bool is_by_time = false;
    std::int64_t first = 0;
    std::int64_t last = 0;

    [[nodiscard]] std::int64_t place(const Point& point) const {
        return is_by_time ? point.timestamp_ms : point.step;
    }
    [[nodiscard]] bool holds(std::int64_t place) const { return place >= first && place <= last; }
    [[nodiscard]] std::int64_t begin(const SeriesPiece& piece) const {
        return is_by_time ? piece.first_ms : piece.summary.min_step;
    }
    [[nodiscard]] std::int64_t end(const SeriesPiece& piece) const {
        return is_by_time ? piece.last_ms : piece.summary.max_step;
    }
};

Axis axis_of(const MetricSeries& whole, const std::optional<SeriesWindow>& window) {
    Axis axis;
    axis.is_by_time = window ? window->is_by_time : whole.min_step() == whole.max_step();
    const SeriesWindow wanted = window.value_or(SeriesWindow{});
    axis.first = std::max(wanted.first, axis.is_by_time ? whole.first_ms() : whole.min_step());
    axis.last = std::min(wanted.last, axis.is_by_time ? whole.last_ms() : whole.max_step());
    return axis;
}

/// Adds points to their buckets, those that follow each other in one bucket at once.
void add_points(Bucketer& bucketer, const Axis& axis, std::span<const Point> points) {
    const auto is_in_order = [&axis](const Point& a, const Point& b) {
        return axis.place(a) < axis.place(b);
    };
    const bool is_sorted = std::is_sorted(points.begin(), points.end(), is_in_order);
    while (!points.empty()) {
        const std::size_t index = bucketer.index_of(axis.place(points.front()));
        const auto is_here = [&](const Point& point) {
            return bucketer.index_of(axis.place(point)) == index;
        };
        const auto end = is_sorted ? std::partition_point(points.begin(), points.end(), is_here)
                                   : points.begin() + 1;
        const auto part = points.first(static_cast<std::size_t>(end - points.begin()));
        // Points lie in the order of time.
        bucketer.add(index, summarize(part), part.front().timestamp_ms, part.back().timestamp_ms);
        points = points.subspan(part.size());
    }
}

/// The points of `piece` that `axis` holds.
Result<std::vector<Point>> points_on(sqlite::Connection& connection, const MetricSeries& whole,
                                     const SeriesPiece& piece, const Axis& axis) {
    TUNE_TRY(points, whole.points_of(connection, piece));
    std::erase_if(points, [&axis](const Point& point) { return !axis.holds(axis.place(point)); });
    return points;
}

Result<std::vector<SeriesBucket>> buckets_of(sqlite::Connection& connection,
                                             const MetricSeries& whole, std::int64_t bucket_count,
                                             const std::optional<SeriesWindow>& window) {
    const Axis axis = axis_of(whole, window);
    std::vector<const SeriesPiece*> pieces;
    std::int64_t row_count = 0;
    for (const SeriesPiece& piece : whole.pieces()) {
        if (axis.end(piece) < axis.first || axis.begin(piece) > axis.last) continue;
        pieces.push_back(&piece);
        row_count += piece.summary.row_count;
    }
    std::vector<SeriesBucket> buckets;
    if (row_count <= bucket_count) {
        std::vector<Point> all;
        for (const SeriesPiece* piece : pieces) {
            TUNE_TRY(points, points_on(connection, whole, *piece, axis));
            all.insert(all.end(), points.begin(), points.end());
        }
        std::sort(all.begin(), all.end(),
                  [](const Point& a, const Point& b) { return compare_in_steps(a, b) < 0; });
        for (const Point& point : all) buckets.push_back(bucket_of(point));
        return buckets;
    }
    Bucketer bucketer(axis.first, axis.last, bucket_count);
    std::vector<Point> points;
    for (const SeriesPiece* piece : pieces) {
        const bool is_whole = axis.holds(axis.begin(*piece)) && axis.holds(axis.end(*piece));
        if (is_whole &&
            bucketer.index_of(axis.begin(*piece)) == bucketer.index_of(axis.end(*piece))) {
            bucketer.add(bucketer.index_of(axis.begin(*piece)), piece->summary, piece->first_ms,
                         piece->last_ms);
            continue;
        }
        TUNE_TRY_VOID(whole.read_points(connection, *piece, points));
        if (!is_whole)
            std::erase_if(points, [&](const Point& one) { return !axis.holds(axis.place(one)); });
        add_points(bucketer, axis, points);
    }
    return bucketer.take();
}

}  // namespace

Result<SeriesKey> find_series(sqlite::Connection& connection, std::string_view run_id,
                              std::string_view key) {
    TUNE_TRY(select, connection.prepare("SELECT r.run_row, k.key_id FROM runs r, keys k "
                                        "WHERE r.run_id = ? AND k.name = ?"));
    TUNE_TRY(has_row, select.with(run_id, key).step());
    if (!has_row) return SeriesKey{};
    return SeriesKey{select.integer(0), select.integer(1)};
}

Result<std::int64_t> count_points(sqlite::Connection& connection, const SeriesKey& series) {
    TUNE_TRY(select, connection.prepare("SELECT row_count FROM latest_metrics WHERE run_row = ? "
                                        "AND key_id = ?"));
    TUNE_TRY(has_row, select.with(series.run_row, series.key_id).step());
    return has_row ? select.integer(0) : std::int64_t{0};
}

Result<Page<Metric>> metric_history(sqlite::Connection& connection, std::string_view run_id,
                                    std::string_view key, std::optional<std::int64_t> max_results,
                                    std::string_view page_token) {
    if (max_results && *max_results < 1)
        return invalid_parameter(
            "Invalid value " + std::to_string(*max_results) +
            " for parameter 'max_results' supplied. It must be a positive integer.");
    const std::uint64_t fingerprint = history_fingerprint(run_id, key);
    std::optional<Point> after;
    if (!page_token.empty()) {
        TUNE_TRY(point, read_history_token(fingerprint, page_token));
        after = point;
    }
    Page<Metric> page;
    TUNE_TRY(series_key, find_series(connection, run_id, key));
    if (series_key.run_row == 0) return page;
    Point last;
    bool has_more = false;
    TUNE_TRY_VOID(for_each_point(connection, series_key, after, [&](const Point& point) {
        if (max_results && static_cast<std::int64_t>(page.items.size()) == *max_results) {
            has_more = true;
            return false;
        }
        page.items.push_back(to_metric(key, point));
        last = point;
        return true;
    }));
    if (has_more) page.next_page_token = history_token(fingerprint, last);
    return page;
}

Result<std::vector<RunHistory>> metric_history_bulk(sqlite::Connection& connection,
                                                    std::span<const std::string> run_ids,
                                                    std::string_view key,
                                                    std::int64_t max_results) {
    TUNE_TRY_VOID(check_runs(run_ids));
    std::vector<std::string> sorted(run_ids.begin(), run_ids.end());
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    std::int64_t left = std::min(max_results, kBulkResultsMax);
    std::vector<RunHistory> all;
    for (const std::string& run_id : sorted) {
        TUNE_TRY(series_key, find_series(connection, run_id, key));
        if (series_key.run_row == 0 || left <= 0) continue;
        RunHistory history{run_id, {}};
        TUNE_TRY_VOID(for_each_point(connection, series_key, {}, [&](const Point& point) {
            if (left <= 0) return false;
            history.metrics.push_back(to_metric(key, point));
            --left;
            return true;
        }));
        if (!history.metrics.empty()) all.push_back(std::move(history));
    }
    return all;
}

std::vector<std::int64_t> sample_positions(std::int64_t row_count, std::int64_t max_results) {
    std::vector<std::int64_t> positions;
    const std::int64_t count = std::min(row_count, max_results);
    for (std::int64_t bucket = 0; bucket < count; ++bucket) {
        const std::int64_t extra = std::min(bucket, row_count % count);
        positions.push_back(bucket * (row_count / count) + extra);
    }
    if (!positions.empty()) positions.back() = row_count - 1;
    return positions;
}

Result<std::vector<RunHistory>> metric_history_bulk_interval(sqlite::Connection& connection,
                                                             std::span<const std::string> run_ids,
                                                             std::string_view key,
                                                             std::optional<StepRange> range,
                                                             std::int64_t max_results) {
    TUNE_TRY_VOID(check_runs(run_ids));
    if (max_results < 1 || max_results > kBulkIntervalResultsMax)
        return invalid_parameter("max_results must be between 1 and " +
                                 std::to_string(kBulkIntervalResultsMax) + ".");
    std::vector<RunHistory> all;
    for (const std::string& run_id : run_ids) {
        TUNE_TRY(series_key, find_series(connection, run_id, key));
        if (series_key.run_row == 0) continue;
        TUNE_TRY(whole, MetricSeries::open(connection, series_key));
        TUNE_TRY(points, whole.sample_in_steps(connection, range, max_results));
        RunHistory history{run_id, {}};
        for (const Point& point : points) history.metrics.push_back(to_metric(key, point));
        if (!history.metrics.empty()) all.push_back(std::move(history));
    }
    return all;
}

Result<std::vector<Series>> series(sqlite::Connection& connection,
                                   std::span<const std::string> run_ids, std::string_view key,
                                   std::int64_t bucket_count,
                                   const std::optional<SeriesWindow>& window) {
    TUNE_TRY_VOID(check_runs(run_ids));
    if (bucket_count < 1 || bucket_count > kSeriesBucketsMax)
        return invalid_parameter("buckets must be between 1 and " +
                                 std::to_string(kSeriesBucketsMax) + ".");
    std::vector<Series> all;
    for (const std::string& run_id : run_ids) {
        TUNE_TRY(series_key, find_series(connection, run_id, key));
        if (series_key.run_row == 0) continue;
        TUNE_TRY(whole, MetricSeries::open(connection, series_key));
        if (whole.row_count() == 0) continue;
        TUNE_TRY(buckets, buckets_of(connection, whole, bucket_count, window));
        if (!buckets.empty()) all.push_back({run_id, std::move(buckets)});
    }
    return all;
}

}  // namespace tune::tracker
