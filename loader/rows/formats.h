#pragma once
// The formats that need no library beyond the loader's own. Internal to the loader.

#include <vector>

#include "loader/rows/row_set.h"

namespace tune::loader {

/// In the order in which a directory is tried.
[[nodiscard]] std::vector<Format> builtin_formats();

/// Whether the directory holds (or is) a file whose name ends so, hidden ones left out.
[[nodiscard]] bool holds_files(const DatasetOptions& options,
                               const std::vector<std::string>& extensions);

/// Whether some part of the path begins with '_' or '.', which says that it is no data.
[[nodiscard]] bool is_hidden(const std::filesystem::path& path);

/// index.json with shards of MDS, or of json, csv, tsv and xsv.
[[nodiscard]] Result<RowSet> open_index(const DatasetOptions& options);

}  // namespace tune::loader
