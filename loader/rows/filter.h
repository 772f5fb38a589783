#pragma once
// Which rows of a table are read: predicates on columns, as pyarrow's `filters` argument has them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace tune::loader {

using FilterValue = std::variant<std::int64_t, double, bool, std::string>;

enum class FilterOp { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };

/// One comparison. Rows whose value is null match no comparison but kNotIn, as in pyarrow. Columns
/// of text, numbers, booleans; dates and timestamps compare with their stored integers or with text
/// ("2026-01-31", "2026-01-31T12:00:00", UTC).
struct Filter {
    std::string column = {};
    FilterOp op = FilterOp::kEqual;
    /// One value; any number for kIn and kNotIn.
    std::vector<FilterValue> values = {};
};

/// Alternatives, each a list of filters that must all match: [[a, b], [c]] is (a and b) or c.
/// Empty: every row.
using Filters = std::vector<std::vector<Filter>>;

/// "column >= 3" or "split in train,val": a column, an operator (= == != < <= > >= in, not in) and
/// a value; numbers and true/false are taken as such, text in single or double quotes always as
/// text. Errors: kInvalidParameterValue.
[[nodiscard]] Result<Filter> parse_filter(std::string_view text);

/// "=", "==", "!=", "<", "<=", ">", ">=", "in" or "not in".
[[nodiscard]] std::optional<FilterOp> filter_op_from_name(std::string_view name);

/// For digests and messages, e.g. "a >= 3".
[[nodiscard]] std::string filter_text(const Filter& filter);

/// Three-way comparison of a stored value with a filter's; nothing when they cannot be compared.
[[nodiscard]] bool matches(const Filter& filter, const FilterValue& stored);

/// What `op` says of stored values that lie between `low` and `high`: false when none can match.
[[nodiscard]] bool may_match(const Filter& filter, const FilterValue& low, const FilterValue& high);

}  // namespace tune::loader
