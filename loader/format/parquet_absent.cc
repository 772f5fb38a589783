// The build without Arrow C++.

#include "loader/format/parquet.h"

namespace tune::loader {

bool can_read_parquet() {
    return false;
}

Result<std::unique_ptr<TableReader>> open_parquet(const std::filesystem::path& path) {
    return Error{Code::kNotImplemented,
                 "'" + path.string() +
                     "' is a Parquet file, and this build was made without Arrow C++. Run "
                     "./setup.sh and build again with -DTUNE_WITH_ARROW=ON, or convert it to CSV"};
}

}  // namespace tune::loader
