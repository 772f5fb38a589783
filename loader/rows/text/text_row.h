#pragma once
// Rows of text into columns, for shards and files of JSONL, CSV and their like. Internal to the
// loader.

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "loader/format/text/json_row.h"
#include "loader/rows/text/column_builder.h"

namespace tune::loader {

/// Columns of one shard of text as its rows come in.
class TextRows {
public:
    /// `columns` must outlive this.
    explicit TextRows(const std::vector<TextColumn>& columns);

    /// A line of JSON: members that are no column are passed over, a missing one is a null. Errors:
    /// kDataLoss for a line that is no object or a value of another kind than its column's.
    [[nodiscard]] Result<void> add_json(std::string_view line);

    /// Fields of a row; `places[c]` is the field of column c. An empty field of a number is a null.
    [[nodiscard]] Result<void> add_fields(const std::vector<std::string_view>& fields,
                                          const std::vector<std::size_t>& places);

    [[nodiscard]] std::shared_ptr<const RowShard> finish();

private:
    const std::vector<TextColumn>& columns_;
    std::vector<ColumnBuilder> builders_;
    std::vector<JsonMember> members_;
    std::deque<std::string> unescaped_;
};

/// Sorts the columns by name, keeps those that were asked for and applies their options. Errors:
/// those of check_names and text_column.
[[nodiscard]] Result<std::vector<TextColumn>> plan_text_columns(
    const DatasetOptions& options, std::vector<std::pair<std::string, TextKind>> columns);

}  // namespace tune::loader
