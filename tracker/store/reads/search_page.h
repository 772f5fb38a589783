#pragma once
// What the searches of runs, experiments and logged models share: limits, tokens, one page of rows.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tracker/search/sql.h"
#include "tracker/sqlite/connection.h"

namespace tune::tracker {

/// Registers the SQL functions that compiled filters call (is_like, is_ilike).
[[nodiscard]] Result<void> add_search_functions(sqlite::Connection& connection);

/// Errors: kInvalidParameterValue unless 1 <= max_results <= `limit`.
[[nodiscard]] Result<void> check_max_results(std::int64_t max_results, std::int64_t limit);

/// Experiment ids as "(1, 2, ...)", bound. REQUIRES: not empty.
[[nodiscard]] std::string bind_ids(const std::vector<std::int64_t>& ids, search::Binder& binder);

struct RowPage {
    std::vector<std::int64_t> rows;
    std::string next_page_token;
};

/// Rows of `query` behind `page_token`, at most `max_results`. `canonical_query` is what the token
/// is bound to.
[[nodiscard]] Result<RowPage> fetch_page(sqlite::Connection& connection,
                                         const search::PageQuery& query, search::Binder binder,
                                         std::string_view canonical_query,
                                         std::string_view page_token, std::int64_t max_results);

}  // namespace tune::tracker
