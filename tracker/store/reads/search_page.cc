#include "tracker/store/reads/search_page.h"

#include "tracker/search/like.h"

namespace tune::tracker {

Result<void> add_search_functions(sqlite::Connection& connection) {
    TUNE_TRY_VOID(connection.add_predicate("is_like", &search::is_like));
    return connection.add_predicate("is_ilike", &search::is_ilike);
}

Result<void> check_max_results(std::int64_t max_results, std::int64_t limit) {
    const std::string start = "Invalid value " + std::to_string(max_results) +
                              " for parameter 'max_results' supplied. It must be ";
    if (max_results < 1) return Error{Code::kInvalidParameterValue, start + "a positive integer"};
    if (max_results > limit)
        return Error{Code::kInvalidParameterValue, start + "at most " + std::to_string(limit)};
    return {};
}

std::string bind_ids(const std::vector<std::int64_t>& ids, search::Binder& binder) {
    std::string list;
    for (const std::int64_t id : ids) list += (list.empty() ? "(" : ", ") + binder.bind(id);
    return list + ")";
}

Result<RowPage> fetch_page(sqlite::Connection& connection, const search::PageQuery& query,
                           search::Binder binder, std::string_view canonical_query,
                           std::string_view page_token, std::int64_t max_results) {
    const std::uint64_t fingerprint = search::query_fingerprint(canonical_query);
    std::vector<search::SqlValue> after;
    if (!page_token.empty()) {
        TUNE_TRY(values, search::read_page_token(fingerprint, page_token,
                                                 search::token_value_count(query)));
        after = std::move(values);
    }
    const std::string sql = search::compile_page(query, after, max_results + 1, binder);
    TUNE_TRY(select, connection.prepare(sql));
    for (std::size_t i = 0; i < binder.values().size(); ++i)
        select.bind_value(static_cast<int>(i + 1), binder.values()[i]);
    RowPage page;
    std::vector<search::SqlValue> last;
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return page;
        if (static_cast<std::int64_t>(page.rows.size()) == max_results) break;
        page.rows.push_back(select.integer(0));
        if (static_cast<std::int64_t>(page.rows.size()) < max_results) continue;
        for (std::size_t i = 0; i < search::token_value_count(query); ++i)
            last.push_back(select.value(static_cast<int>(i + 1)));
    }
    page.next_page_token = search::make_page_token(fingerprint, last);
    return page;
}

}  // namespace tune::tracker
