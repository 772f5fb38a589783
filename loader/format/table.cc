#include "loader/format/table.h"

#include "loader/format/csv.h"
#include "loader/format/parquet.h"

namespace tune::loader {

Result<std::unique_ptr<TableReader>> open_table(const std::filesystem::path& path) {
    const std::string extension = path.extension().string();
    Result<std::unique_ptr<TableReader>> table =
        extension == ".csv"   ? open_csv(path, ',')
        : extension == ".tsv" ? open_csv(path, '\t')
        : extension == ".parquet"
            ? open_parquet(path)
            : Error{Code::kInvalidParameterValue,
                    "'" + path.string() + "' does not end in .csv, .tsv or .parquet"};
    if (table || table.error().message.find(path.string()) != std::string::npos) return table;
    Error error = std::move(table).error();
    error.context = path.string();
    return error;
}

}  // namespace tune::loader
