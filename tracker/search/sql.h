#pragma once
// Clauses and sort keys as SQL. Values are always bound; texts of the user never become SQL. What
// the tables look like comes from the caller (SqlSchema), so that this folder knows no schema.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tracker/search/filter.h"
#include "tracker/search/order_by.h"
#include "tracker/search/page_token.h"

namespace tune::tracker::search {

using SqlValue = TokenValue;

/// Collects bound values; bind() returns the parameter's name ("?7") to put into the text.
class Binder {
public:
    std::string bind(std::int64_t value);
    std::string bind(double value);
    std::string bind(std::string value);
    std::string bind(SqlValue value);
    [[nodiscard]] const std::vector<SqlValue>& values() const { return values_; }

private:
    std::vector<SqlValue> values_;
};

/// How the values of an entity (metrics, params, ...) of the row at hand are reached: rows of
/// `table` for which on(alias, key) holds; `key` is a bound parameter's name.
struct Facet {
    std::string table;
    std::function<std::string(const std::string& alias, const std::string& key)> on;
    std::string value = "value";  // column of the value
    /// Condition on a row that is there: its value is NaN. None if NaN is NULL or impossible.
    std::function<std::string(const std::string& alias)> is_nan = {};
};

/// REQUIRES for compile_*: every Aggregate::kBest has become kMin or kMax.
struct SqlSchema {
    /// Expression of an attribute by its canonical name. Empty = unknown (a programmer's error).
    std::function<std::string(std::string_view key)> attribute;
    Facet metric;
    Facet metric_min = {};  // Aggregate::kMin, where a subject has it
    Facet metric_max = {};
    Facet param;
    Facet tag;
    /// Facet of datasets by key (name, digest, context); its `on` ignores the key.
    std::function<Facet(std::string_view key)> dataset;
    /// True for attributes whose bound values are integers although the filter quotes them.
    std::function<bool(std::string_view key)> is_integer_text;
};

/// The condition as SQL, complete to stand beside AND; "1" for an empty one. NULL counts as false,
/// also under NOT.
[[nodiscard]] std::string compile_filter(const SqlSchema& schema, const Condition& condition,
                                         Binder& binder);

/// One column to sort by. `join` brings in the table that `value` reads, at most one row each.
struct SortColumn {
    std::string value;     // of a metric, the text 'NaN' stands for NaN
    bool has_nan = false;  // NaN sorts after numbers, in both directions
    bool is_ascending = true;
    bool is_nullable = true;  // NULL sorts last, in both directions
    std::string join = {};    // "LEFT JOIN ... ON ..."
};

/// REQUIRES: the key's facet has at most one row per key. `index` makes the join's alias unique.
[[nodiscard]] SortColumn compile_order_key(const SqlSchema& schema, const OrderKey& key,
                                           std::size_t index, Binder& binder);

/// SELECT row, sort values ... in order, behind `after` (empty: from the start).
struct PageQuery {
    std::string row;    // expression selected first, e.g. "r.run_row"
    std::string from;   // "runs r"
    std::string where;  // complete condition
    std::vector<SortColumn> columns;
};

/// Number of values in the token of such a page.
[[nodiscard]] std::size_t token_value_count(const PageQuery& query);

/// The SQL; its result columns are `row`, then the values of the token. `after`: values of a token,
/// or empty. Fetches at most `limit` rows.
[[nodiscard]] std::string compile_page(const PageQuery& query, std::span<const SqlValue> after,
                                       std::int64_t limit, Binder& binder);

}  // namespace tune::tracker::search
