#pragma once
// Rows of a table (CSV, Parquet) on their way into a data set.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "loader/format/mds/encoding.h"

namespace tune::loader {

/// A file of rows, read once from the beginning to the end. One thread.
class TableReader {
public:
    virtual ~TableReader() = default;

    [[nodiscard]] virtual const std::vector<std::string>& column_names() const = 0;

    /// The encoding that fits everything in a column, for each column; needs a pass over the file
    /// where the file does not state its types. Errors: as next(); kInvalidParameterValue is left
    /// to select() for types that have none (the encoding is then empty).
    [[nodiscard]] virtual Result<std::vector<std::string>> natural_encodings() = 0;

    /// Rows in the file. Errors: as next(). Cost: for CSV, a pass over the file.
    [[nodiscard]] virtual Result<std::int64_t> row_count() = 0;

    /// The columns that next() gives, by their number, in this order. Call before the first next().
    /// Errors: kInvalidParameterValue for a column whose type cannot be stored.
    [[nodiscard]] virtual Result<void> select(const std::vector<std::size_t>& columns) = 0;

    /// The next row: one value for each selected column; they point into the reader until the next
    /// call. False at the end. Errors: kInvalidParameterValue naming line (or row) and column of
    /// the error, kInternalError when the file cannot be read.
    [[nodiscard]] virtual Result<bool> next(std::vector<Value>& row) = 0;

    /// Where the row given last stands, e.g. "line 17".
    [[nodiscard]] virtual std::string place() const = 0;

    /// How much of the file was read, 0..1.
    [[nodiscard]] virtual double progress() const = 0;
};

/// Opens a table by the extension of its name: .csv, .tsv, .parquet. Errors: kInvalidParameterValue
/// for another extension, kNotImplemented for Parquet in a build without Arrow, and those of
/// opening.
[[nodiscard]] Result<std::unique_ptr<TableReader>> open_table(const std::filesystem::path& path);

}  // namespace tune::loader
