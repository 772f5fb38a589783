#pragma once
// Arrow arrays as columns of a decoded shard.

#include <arrow/array.h>

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "loader/rows/row_shard.h"
#include "loader/tables/output_column.h"

namespace tune::loader {

/// The rows that count; empty `rows` with `all`: every one.
struct RowSelection {
    std::shared_ptr<const std::vector<std::uint32_t>> rows;  ///< ascending; nullptr: all
};

/// Without copying where the array already lies as batches want it. Errors, naming the row:
/// kInvalidParameterValue for a null that was not asked for or a list of another size than
/// stated; kDataLoss for a file whose type does not fit the table's.
[[nodiscard]] Result<ColumnBlock> column_block(const OutputColumn& column,
                                               const std::shared_ptr<arrow::Array>& array,
                                               const RowSelection& selection);

/// The same value in every row: of a partition, or a null (nothing) of a column that a file lacks.
/// Errors: as column_block().
[[nodiscard]] Result<ColumnBlock> constant_block(const OutputColumn& column,
                                                 const std::optional<std::string>& text);

}  // namespace tune::loader
