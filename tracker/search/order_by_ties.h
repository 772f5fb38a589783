#pragma once
// Where ties of order_by break: the one definition for SQL (sql.cc and the searches of the store)
// and for columns in memory (store/reads/runs/run_ranking.h). Both must give the same pages, since
// a query may be answered by either.
//
// Within a key, numbers come first, then NaN, then missing values, whatever the direction. Rows
// that are equal in all keys follow the tie-breakers of their subject, the last of which is unique.

#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tracker/search/filter.h"
#include "tracker/search/sql.h"

namespace tune::tracker::search {

/// Ascending in both directions of a key; the numbers stand in page tokens.
enum class ValueRank { kNumber = 0, kNan = 1, kMissing = 2 };

/// The rank of the SQL expression `value`, in which NaN is a text.
[[nodiscard]] std::string sql_rank(const std::string& value);

struct TieBreaker {
    std::string_view attribute;  // canonical name
    bool is_ascending = true;
};

/// Of runs; also what columns in memory follow. MLflow: the later start first, then the run id.
inline constexpr std::array kRunTies = {TieBreaker{"start_time", false},
                                        TieBreaker{"run_id", true}};

/// The tie-breakers of `subject`, in order. Without keys they are the whole order.
[[nodiscard]] std::span<const TieBreaker> tie_breakers(Subject subject, bool has_keys);

/// Appends the tie-breakers that are not among the query's own keys. `columns`: those of its keys;
/// `is_key` says whether an attribute is one. REQUIRES: tie-breakers are never NULL.
void append_tie_breakers(Subject subject, const std::function<bool(std::string_view)>& is_key,
                         const std::function<std::string(std::string_view)>& attribute,
                         std::vector<SortColumn>& columns);
/// The same for parsed keys.
void append_tie_breakers(Subject subject, std::span<const OrderKey> keys,
                         const std::function<std::string(std::string_view)>& attribute,
                         std::vector<SortColumn>& columns);

/// Negative, 0, positive: `a` comes before, with or after `b`.
template <class Value>
[[nodiscard]] constexpr int compare_values(const Value& a, const Value& b, bool is_ascending) {
    if (a == b) return 0;
    return (a < b) == is_ascending ? -1 : 1;
}

/// The same for values of a metric, of which `a_rank` and `b_rank` are the ranks.
[[nodiscard]] constexpr int compare_ranked(ValueRank a_rank, double a, ValueRank b_rank, double b,
                                           bool is_ascending) {
    if (a_rank != b_rank) return a_rank < b_rank ? -1 : 1;
    return a_rank == ValueRank::kNumber ? compare_values(a, b, is_ascending) : 0;
}

}  // namespace tune::tracker::search
