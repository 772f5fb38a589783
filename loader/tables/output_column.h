#pragma once
// How a column of an Arrow table is given out in batches.

#include <arrow/type.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "loader/rows/row_set.h"

namespace tune::loader {

/// A column of a table, and how its files name it.
struct TableColumn {
    std::string name;
    std::string stored_name;
    /// In place of stored_name, where the table says so (Delta's column mapping by id).
    std::optional<int> field_id = {};
    std::shared_ptr<arrow::DataType> type;
    /// Its value is a file's, not a row's: hive folders, partitions of Delta.
    bool is_partition = false;
};

enum class ColumnKind {
    kNumber,       ///< numbers, booleans, dates, times
    kFixedArray,   ///< every row the same number of elements
    kNumberList,   ///< any number of elements
    kBytes,        ///< str, bytes
    kDecimalText,  ///< as text
    kJsonText,     ///< lists of lists, structs, maps
    kNpy,          ///< bytes of a .npy or .npz file (Petastorm)
};

struct OutputColumn {
    TableColumn table;
    ColumnOptions options;
    ColumnInfo info;
    ColumnKind kind = ColumnKind::kNumber;
    /// Of the numbers in the table, before they become info.dtype.
    Dtype stored = Dtype::kUint8;
};

/// `holds_npy`: the column's bytes are .npy files. Errors: kInvalidParameterValue for options that
/// do not fit the type, kNotImplemented for a type that cannot be given out, naming the column.
[[nodiscard]] Result<OutputColumn> output_column(const TableColumn& column,
                                                 const ColumnOptions& options, bool holds_npy);

/// The element type of numbers, booleans (uint8), dates and times (int64); nothing for others.
[[nodiscard]] std::optional<Dtype> number_dtype(const arrow::DataType& type);

/// What lies beneath lists of a fixed size, and their sizes from the outside in.
[[nodiscard]] std::shared_ptr<arrow::DataType> element_type(
    const std::shared_ptr<arrow::DataType>& type, std::vector<std::int64_t>& shape);

}  // namespace tune::loader
