#pragma once

#include "base/result.h"
#include "loader/rows/row_set.h"

namespace tune::loader {

/// A Delta table at options.version or options.timestamp, or the newest: the files of its log as
/// row groups, without the rows that deletion vectors name. Errors: those of read_snapshot() and
/// open_parquet_table(); kResourceDoesNotExist for a data file that was vacuumed;
/// kNotImplemented for a type this reader does not know.
[[nodiscard]] Result<RowSet> open_delta(const DatasetOptions& options);

}  // namespace tune::loader
