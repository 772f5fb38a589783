#pragma once
// Reads of experiments on a connection: shared by the writer and the store's readers.

#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tracker/sqlite/connection.h"
#include "tracker/store/store.h"

namespace tune::tracker {

/// "No Experiment with id=9 exists".
[[nodiscard]] Error no_experiment(ExperimentId experiment_id);

[[nodiscard]] Result<std::optional<Experiment>> find_experiment(sqlite::Connection& connection,
                                                                ExperimentId experiment_id);
[[nodiscard]] Result<std::optional<Experiment>> find_experiment_by_name(
    sqlite::Connection& connection, std::string_view name);
[[nodiscard]] Result<Page<Experiment>> search_experiments(sqlite::Connection& connection,
                                                          const SearchExperiments& query);
[[nodiscard]] Result<std::vector<ExperimentStatistics>> experiment_statistics(
    sqlite::Connection& connection);

}  // namespace tune::tracker
