#pragma once
// Searches of runs that filter and sort by metrics, over columns in memory instead of rows.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tracker/search/filter.h"
#include "tracker/search/order_by.h"
#include "tracker/search/sql.h"
#include "tracker/store/metrics/metric_columns.h"
#include "tracker/store/reads/read_snapshot.h"
#include "tracker/store/reads/search_page.h"
#include "tracker/store/types.h"

namespace tune::tracker {

struct ColumnSearch {
    const std::vector<ExperimentId>& experiment_ids;
    ViewType view = ViewType::kActiveOnly;
    /// The same two as a condition of SQL.
    std::string where;
    search::Binder binder;
    const search::Condition& filter;
    const std::vector<search::OrderKey>& keys;
    std::string_view canonical_query;
    std::string_view page_token;
    std::int64_t max_results = 0;
};

/// Whether a search has something to gain: the filter has a condition on metrics alone, joined to
/// the rest by AND, or the order is by a metric; and all its sort keys are metrics.
[[nodiscard]] bool suits_columns(const search::Condition& filter,
                                 const std::vector<search::OrderKey>& keys);

/// The same page, with the same token, as fetch_page of the same query. Conditions that are not on
/// metrics alone are left to SQL. Cost: some ns per run of the store and column; a step of an index
/// per run where SQL has a part; sorting what is found. REQUIRES: suits_columns.
[[nodiscard]] Result<RowPage> columnar_search(const ReadSnapshot& snapshot,
                                              const search::SqlSchema& schema, ColumnSearch search);

}  // namespace tune::tracker
