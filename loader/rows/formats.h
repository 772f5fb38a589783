#pragma once
// The formats that need no library beyond the loader's own. Internal to the loader.

#include <vector>

#include "loader/rows/row_set.h"

namespace tune::loader {

/// In the order in which a directory is tried.
[[nodiscard]] std::vector<Format> builtin_formats();

/// index.json with shards of MDS, or of json, csv, tsv and xsv.
[[nodiscard]] Result<RowSet> open_index(const DatasetOptions& options);

}  // namespace tune::loader
