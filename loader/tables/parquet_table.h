#pragma once
// A table that lies in Parquet files: its row groups as the shards of a data set.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "loader/cache/cached_source.h"
#include "loader/rows/row_set.h"
#include "loader/source/object_source.h"
#include "loader/tables/output_column.h"

namespace tune::loader {

/// One file of a table.
struct TableFile {
    ObjectInfo object;
    /// Of the columns that are partitions, as text; nothing: null.
    std::map<std::string, std::optional<std::string>> partition = {};
    /// Rows that count no more, by their place in the file, ascending.
    std::shared_ptr<const std::vector<std::uint64_t>> deleted = {};
};

struct ParquetTable {
    /// "parquet" or "delta".
    std::string format = {};
    std::shared_ptr<const ObjectSource> source = {};
    /// The same one, where data is kept in a cache; else nullptr.
    std::shared_ptr<CachedSource> cache = {};
    std::vector<TableFile> files = {};
    /// Empty: those of the first file, and what partitions of files name.
    std::vector<TableColumn> columns = {};
    /// Columns of bytes may hold .npy files, as Petastorm writes them.
    bool may_hold_npy = false;
};

/// Reads every footer (several at a time) and, with filters, their columns; row groups without a
/// row that counts are left out. Rows are decoded a row group at a time. Errors: kDataLoss naming
/// the damaged file; kInvalidParameterValue for files of other columns, unknown names, filters or
/// types that do not fit.
[[nodiscard]] Result<RowSet> open_parquet_table(const DatasetOptions& options, ParquetTable table);

/// A file or a folder of Parquet files, with hive partitions ("year=2026/part-0.parquet") and files
/// that Petastorm wrote. Files whose names begin with '_' or '.' are no data.
[[nodiscard]] Result<RowSet> open_parquet_folder(const DatasetOptions& options);

}  // namespace tune::loader
