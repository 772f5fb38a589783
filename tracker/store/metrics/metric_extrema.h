#pragma once

#include "base/result.h"
#include "tracker/sqlite/connection.h"

namespace tune::tracker {

/// Computes min_value and max_value of all rows of latest_metrics from their history. For data
/// bases that were written before there were such columns. REQUIRES: a write transaction. Cost: one
/// pass over rows and summaries of blocks; no block is opened.
[[nodiscard]] Result<void> fill_extrema(sqlite::Connection& connection);

}  // namespace tune::tracker
