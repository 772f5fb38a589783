#pragma once
// Reads of metric history on a connection.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tracker/sqlite/connection.h"
#include "tracker/store/metrics/metric_log.h"
#include "tracker/store/store.h"

namespace tune::tracker {

/// Where a run's metric lies; run_row 0 when there is no such run or metric name.
[[nodiscard]] Result<SeriesKey> find_series(sqlite::Connection& connection, std::string_view run_id,
                                            std::string_view key);
/// 0 for an unknown series. Cost: one look-up.
[[nodiscard]] Result<std::int64_t> count_points(sqlite::Connection& connection,
                                                const SeriesKey& series);

[[nodiscard]] Result<Page<Metric>> metric_history(sqlite::Connection& connection,
                                                  std::string_view run_id, std::string_view key,
                                                  std::optional<std::int64_t> max_results,
                                                  std::string_view page_token);
[[nodiscard]] Result<std::vector<RunHistory>> metric_history_bulk(
    sqlite::Connection& connection, std::span<const std::string> run_ids, std::string_view key,
    std::int64_t max_results);
[[nodiscard]] Result<std::vector<RunHistory>> metric_history_bulk_interval(
    sqlite::Connection& connection, std::span<const std::string> run_ids, std::string_view key,
    std::optional<StepRange> range, std::int64_t max_results);
/// A part of histories, ends included.
struct SeriesWindow {
    /// By timestamp in ms instead of by step; buckets are then of equal width in time.
    bool is_by_time = false;
    std::int64_t first = INT64_MIN;
    std::int64_t last = INT64_MAX;
};

/// As Store::series, of the points in `window` only; without one, all. Cost: O(blocks), of which
/// those on a border of buckets or of the window are opened.
[[nodiscard]] Result<std::vector<Series>> series(sqlite::Connection& connection,
                                                 std::span<const std::string> run_ids,
                                                 std::string_view key, std::int64_t bucket_count,
                                                 const std::optional<SeriesWindow>& window = {});

/// Positions (ascending) of MLflow 3.17.2's sample of `row_count` rows: the first row of each of
/// `max_results` equal buckets (SQL's NTILE), the last row in place of the last one; all rows when
/// there are no more than `max_results`.
[[nodiscard]] std::vector<std::int64_t> sample_positions(std::int64_t row_count,
                                                         std::int64_t max_results);

}  // namespace tune::tracker
