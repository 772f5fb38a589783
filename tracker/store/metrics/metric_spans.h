#pragma once
// Summaries of many blocks of a metric's history in one row, so that a reader of a million points
// reads 90 pages to know all blocks instead of 3,907.

#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/result.h"
#include "tracker/sqlite/connection.h"
#include "tracker/store/metrics/metric_block.h"
#include "tracker/store/metrics/metric_log.h"

namespace tune::tracker {

/// Blocks in a span: 44 summaries of 88 bytes and the row's other columns fill one page of 4 kB.
inline constexpr std::size_t kSpanBlocks = 44;

/// A block, or the tail (block_id 0).
struct SeriesPiece {
    std::int64_t block_id = 0;
    std::int64_t first_ms = 0;
    std::int64_t last_ms = 0;
    BlockSummary summary;
};

/// Blocks of the series behind its last span, but no more than are worth counting: more than
/// kSpanBlocks make a span possible. Cost: as many steps of an index.
[[nodiscard]] Result<std::size_t> count_blocks_beyond_spans(sqlite::Connection& connection,
                                                            const SeriesKey& key);

/// Makes one span of the oldest blocks that none covers. False: there are too few. Cost: reads
/// kSpanBlocks blocks, writes one row.
[[nodiscard]] Result<bool> add_span(sqlite::Connection& connection, const SeriesKey& key);

/// Before the block that begins with `first` is replaced: removes the spans that cover it and all
/// behind them.
[[nodiscard]] Result<void> drop_spans_from(sqlite::Connection& connection, const SeriesKey& key,
                                           const Point& first);

/// Visits all blocks in order: from spans, then one by one. Errors: kDataLoss.
[[nodiscard]] Result<void> for_each_piece(sqlite::Connection& connection, const SeriesKey& key,
                                          const std::function<void(const SeriesPiece&)>& visit);

/// Makes the spans of all histories in a database that has none. Cost: one step of an index a
/// block, and one page read a block of long histories.
[[nodiscard]] Result<void> fill_spans(sqlite::Connection& connection);

}  // namespace tune::tracker
