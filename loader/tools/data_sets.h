#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "loader/format/mds/index.h"

namespace tune::loader {

/// A data set on disk.
struct DataSet {
    std::filesystem::path directory;
    Index index;
};

/// The data set in `directory`, or, when it has no index.json, those in its immediate
/// subdirectories (splits), sorted by name. Errors: kResourceDoesNotExist when there is none, those
/// of read_index.
[[nodiscard]] Result<std::vector<DataSet>> find_data_sets(const std::filesystem::path& directory);

}  // namespace tune::loader
