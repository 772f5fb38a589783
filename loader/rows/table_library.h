#pragma once
// Parquet and Delta for programs that do not link tune_loader_tables: libtune_tables.so, and Arrow
// with it, is loaded when the first table is opened (loader/source/source_library.h).

#include <string>

#include "base/result.h"
#include "loader/rows/row_set.h"

namespace tune::loader {

using OpenTableFunction = void(const std::string& format, const DatasetOptions& options,
                               Result<RowSet>& result);

inline constexpr const char* kTableLibrary = "libtune_tables.so";
inline constexpr const char* kTableFunction = "tune_open_table";

/// From here on Dataset reads Parquet and Delta tables through the library. More calls do nothing.
/// Opening a table where library or Arrow cannot be loaded is kNotImplemented, with the reason.
void use_table_library();

}  // namespace tune::loader
