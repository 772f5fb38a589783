#pragma once
// Reads of runs on a connection: shared by the writer and the store's readers.

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tracker/sqlite/connection.h"
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
[[nodiscard]] Result<Page<Run>> search_runs(sqlite::Connection& connection,
                                            const SearchRuns& query);
[[nodiscard]] Result<std::vector<DatasetSummary>> search_datasets(
    sqlite::Connection& connection, std::span<const ExperimentId> experiment_ids);

template <class Item>
void sort_by_key(std::vector<Item>& items) {
    std::sort(items.begin(), items.end(),
              [](const Item& a, const Item& b) { return a.key < b.key; });
}

}  // namespace tune::tracker
