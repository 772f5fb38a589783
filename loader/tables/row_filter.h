#pragma once
// Filters on row groups: first by their statistics, then row by row.

#include <arrow/table.h>
#include <parquet/metadata.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "loader/rows/filter.h"
#include "loader/tables/output_column.h"

namespace tune::loader {

/// The filters with values in the form in which `columns` store theirs (dates as days, times in the
/// column's unit). Errors: kInvalidParameterValue for a column that does not exist or a comparison
/// that its type cannot have.
[[nodiscard]] Result<Filters> bind_filters(const Filters& filters,
                                           const std::vector<TableColumn>& columns);

/// A value of a partition in the form of a filter's; nothing when `text` is none of the type.
[[nodiscard]] std::optional<FilterValue> partition_value(const arrow::DataType& type,
                                                         const std::string& text);

/// Smallest and largest value of a column in a row group, where statistics state them in the order
/// and unit of `type`.
struct ValueRange {
    FilterValue low;
    FilterValue high;
    bool may_have_nan = false;
};
[[nodiscard]] std::optional<ValueRange> value_range(const parquet::RowGroupMetaData& group,
                                                    int leaf, const arrow::DataType& type);

/// For one filter: whether any row can match; called with each filter of the alternatives.
using MayMatch = std::function<bool(const Filter& filter)>;
[[nodiscard]] bool may_match_any(const Filters& filters, const MayMatch& may_match);

/// What a filter's column holds: rows of the table, or a value of the whole file (nothing: null).
struct FilterColumn {
    std::shared_ptr<arrow::Array> array = {};
    std::optional<FilterValue> constant = {};
};
using FindColumn = std::function<FilterColumn(const std::string& name)>;

/// The rows that match, ascending.
[[nodiscard]] std::vector<std::uint32_t> matching_rows(const Filters& filters,
                                                       std::int64_t row_count,
                                                       const FindColumn& find);

}  // namespace tune::loader
