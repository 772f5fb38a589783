#pragma once
// One metric's history as a list of pieces (blocks and the tail) that are read only when needed.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "tracker/sqlite/connection.h"
#include "tracker/store/metrics/metric_block.h"
#include "tracker/store/metrics/metric_log.h"
#include "tracker/store/metrics/metric_spans.h"
#include "tracker/store/store.h"

namespace tune::tracker {

/// Calls `visit` for the points behind `after` in the order of time until it returns false. Reads
/// one block at a time. Cost: O(blocks visited).
[[nodiscard]] Result<void> for_each_point(sqlite::Connection& connection, const SeriesKey& key,
                                          const std::optional<Point>& after,
                                          const std::function<bool(const Point&)>& visit);

class MetricSeries {
public:
    /// Reads the summaries: a page for every kSpanBlocks blocks. An unknown series has no pieces.
    [[nodiscard]] static Result<MetricSeries> open(sqlite::Connection& connection,
                                                   const SeriesKey& key);

    [[nodiscard]] std::int64_t row_count() const { return row_count_; }
    [[nodiscard]] std::int64_t min_step() const { return min_step_; }
    [[nodiscard]] std::int64_t max_step() const { return max_step_; }
    [[nodiscard]] std::int64_t first_ms() const { return first_ms_; }
    [[nodiscard]] std::int64_t last_ms() const { return last_ms_; }
    [[nodiscard]] const std::vector<SeriesPiece>& pieces() const { return pieces_; }

    [[nodiscard]] Result<std::vector<Point>> points_of(sqlite::Connection& connection,
                                                       const SeriesPiece& piece) const;
    /// The same into `points`, which keeps its memory.
    [[nodiscard]] Result<void> read_points(sqlite::Connection& connection, const SeriesPiece& piece,
                                           std::vector<Point>& points) const;
    [[nodiscard]] Result<std::vector<Point>> all_points(sqlite::Connection& connection) const;

    /// MLflow's sample (read_metrics.h) of the points with steps in `range`, in the order of steps.
    /// When steps grow with time, only the blocks that hold sampled points are read; else all.
    [[nodiscard]] Result<std::vector<Point>> sample_in_steps(sqlite::Connection& connection,
                                                             const std::optional<StepRange>& range,
                                                             std::int64_t max_results) const;

private:
    /// Points that are read (`points`), or a whole piece that is not yet.
    struct Group {
        const SeriesPiece* piece = nullptr;
        std::int64_t count = 0;
        std::vector<Point> points;
    };

    [[nodiscard]] bool is_in_step_order() const;
    [[nodiscard]] Result<std::vector<Point>> points_within(sqlite::Connection& connection,
                                                           const SeriesPiece& piece,
                                                           const StepRange& range) const;
    [[nodiscard]] Result<std::vector<Group>> groups_within(sqlite::Connection& connection,
                                                           const StepRange& range) const;
    void add(const SeriesPiece& piece);

    std::vector<SeriesPiece> pieces_;
    std::vector<Point> tail_;
    std::int64_t row_count_ = 0;
    std::int64_t min_step_ = 0;
    std::int64_t max_step_ = 0;
    std::int64_t first_ms_ = 0;
    std::int64_t last_ms_ = 0;
};

}  // namespace tune::tracker
