#pragma once
// The statements on metric_blocks and the tails: used by the writer (MetricLog) and the readers.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "tracker/sqlite/connection.h"
#include "tracker/store/metrics/metric_block.h"

namespace tune::tracker {

struct SeriesKey;

struct Block {
    std::int64_t block_id = 0;
    std::vector<Point> points;  // ordered by compare_in_time
};

/// The block whose range `point` falls into: the last that does not begin after it, or else the
/// first. Errors: kDataLoss when the series has no block or the block is damaged.
[[nodiscard]] Result<Block> read_block_holding(sqlite::Connection& connection, const SeriesKey& key,
                                               const Point& point);

/// Inserts `points` (ordered, 1..kBlockPointsMax) as a block; returns its id.
[[nodiscard]] Result<std::int64_t> insert_block(sqlite::Connection& connection,
                                                const SeriesKey& key,
                                                std::span<const Point> points);

/// Adds `points` (ordered, all after `last`, the block's last point) to a block.
[[nodiscard]] Result<void> extend_block(sqlite::Connection& connection, std::int64_t block_id,
                                        const Point& last, std::span<const Point> points);

[[nodiscard]] Result<void> delete_block(sqlite::Connection& connection, std::int64_t block_id);

/// The newest points, which are in no block, ordered by compare_in_time; empty for an unknown
/// series.
[[nodiscard]] Result<std::vector<Point>> read_tail(sqlite::Connection& connection,
                                                   const SeriesKey& key);

}  // namespace tune::tracker
