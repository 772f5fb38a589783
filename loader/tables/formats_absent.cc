// The build without Arrow C++.

#include "loader/tables/formats.h"
#include "loader/tables/parquet_writer.h"

namespace tune::loader {

void use_arrow_formats() {}

Result<std::unique_ptr<ParquetWriter>> open_parquet_writer(const std::filesystem::path& path,
                                                           const std::vector<ColumnInfo>&) {
    return Error{Code::kNotImplemented,
                 "this program was built without Arrow C++, which writing Parquet needs",
                 path.string()};
}

}  // namespace tune::loader
