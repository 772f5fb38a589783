#include "loader/rows/formats.h"

#include "loader/cache/remote_set.h"
#include "loader/format/mds/index.h"
#include "loader/rows/mds_rows.h"

namespace tune::loader {
namespace {

bool has_index(const DatasetOptions& options) {
    std::error_code ignored;
    return is_cached(options) ||
           std::filesystem::exists(data_directory(options) / "index.json", ignored);
}

}  // namespace

std::vector<Format> builtin_formats() {
    return {{"mds", has_index, open_index}};
}

Result<RowSet> open_index(const DatasetOptions& options) {
    TUNE_TRY(set, open_streams(options));
    return open_mds(options, std::move(set));
}

}  // namespace tune::loader
