#include "loader/rows/table_library.h"

#include "loader/rows/formats.h"
#include "loader/source/source_library.h"

namespace tune::loader {
namespace {

Result<RowSet> open_table(const std::string& format, const DatasetOptions& options) {
    TUNE_TRY(function,
             library_function(kTableLibrary, kTableFunction, "Parquet files and Delta tables"));
    Result<RowSet> result = Error{};
    reinterpret_cast<OpenTableFunction*>(function)(format, options, result);
    return result;
}

}  // namespace

void use_table_library() {
    add_format({"delta", holds_delta_log,
                [](const DatasetOptions& options) { return open_table("delta", options); }});
    add_format({"parquet", holds_parquet,
                [](const DatasetOptions& options) { return open_table("parquet", options); }});
}

}  // namespace tune::loader
