// libtune_tables.so: the one function that programs without Arrow call.

#include "loader/rows/table_library.h"
#include "loader/tables/delta/delta_table.h"
#include "loader/tables/parquet_table.h"

extern "C" __attribute__((visibility("default"))) void tune_open_table(
    const std::string& format, const tune::loader::DatasetOptions& options,
    tune::Result<tune::loader::RowSet>& result) {
    result = format == "delta" ? tune::loader::open_delta(options)
                               : tune::loader::open_parquet_folder(options);
}
