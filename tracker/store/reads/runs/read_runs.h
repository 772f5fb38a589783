#pragma once
// Reads of runs on a connection: shared by the writer and the store's readers.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tracker/sqlite/connection.h"
#include "tracker/store/reads/read_snapshot.h"
#include "tracker/store/reads/runs/run_loader.h"
#include "tracker/store/store.h"

namespace tune::tracker {

/// "Run with id=x not found".
[[nodiscard]] Error no_run(std::string_view run_id);

[[nodiscard]] Result<std::optional<RunInfo>> find_run_info(sqlite::Connection& connection,
                                                           std::string_view run_id);
[[nodiscard]] Result<std::int64_t> find_run_row(sqlite::Connection& connection,
                                                std::string_view run_id);  // 0 = none
/// Errors: kResourceDoesNotExist.
[[nodiscard]] Result<Run> load_run(sqlite::Connection& connection, std::string_view run_id);
[[nodiscard]] Result<Page<Run>> search_runs(const ReadSnapshot& snapshot, const SearchRuns& query);

/// A page of a search, without what is in the runs.
struct RunRows {
    std::vector<std::int64_t> rows;
    std::string next_page_token;
};
/// As Store::search_runs.
[[nodiscard]] Result<RunRows> find_runs(const ReadSnapshot& snapshot, const SearchRuns& query);
/// All that match, at most `limit`; token and max_results of the query are ignored.
[[nodiscard]] Result<std::vector<std::int64_t>> find_all_runs(const ReadSnapshot& snapshot,
                                                              SearchRuns query, std::int64_t limit);
using VisitRun = std::function<bool(std::size_t index, const RunView& run)>;

/// Calls `visit` with the runs of `rows` and their indexes, in order; rows that are no more are
/// left out. False from `visit` ends it. The view is valid during the call only. Cost: one run in
/// memory.
[[nodiscard]] Result<void> visit_runs(sqlite::Connection& connection,
                                      std::span<const std::int64_t> rows, const RunFields& fields,
                                      const VisitRun& visit);

[[nodiscard]] Result<std::vector<DatasetSummary>> search_datasets(
    sqlite::Connection& connection, std::span<const ExperimentId> experiment_ids);

template <class Item>
void sort_by_key(std::vector<Item>& items) {
    std::sort(items.begin(), items.end(),
              [](const Item& a, const Item& b) { return a.key < b.key; });
}

}  // namespace tune::tracker
