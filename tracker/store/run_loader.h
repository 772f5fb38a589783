#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tracker/sqlite/connection.h"
#include "tracker/store/types.h"

namespace tune::tracker {

/// Errors: kDataLoss if there is no such row.
[[nodiscard]] Result<RunInfo> load_run_info(sqlite::Connection& connection, std::int64_t run_row);

/// Loads whole runs by row. Holds its statements and the names of the keys it met, so that a page
/// of 1,000 runs prepares and looks up each once. Cost: six index look-ups a run, and a step a
/// metric, param and tag.
class RunLoader {
public:
    [[nodiscard]] static Result<RunLoader> prepare(sqlite::Connection& connection);
    [[nodiscard]] Result<Run> load(std::int64_t run_row);

private:
    struct Statements {
        sqlite::Statement info, key, metrics, params, tags, datasets, input_tags, models;
    };
    explicit RunLoader(Statements statements) : statements_(std::move(statements)) {}
    [[nodiscard]] Result<const std::string*> name_of(std::int64_t key_id);
    template <class Item>
    [[nodiscard]] Result<void> load_pairs(sqlite::Statement& select, std::int64_t run_row,
                                          std::vector<Item>& items);
    [[nodiscard]] Result<void> load_metrics(std::int64_t run_row, Run& run);
    [[nodiscard]] Result<void> load_datasets(std::int64_t run_row, Run& run);
    [[nodiscard]] Result<void> load_input_tags(std::int64_t input_row, std::vector<Tag>& tags);
    [[nodiscard]] Result<void> load_models(std::int64_t run_row, Run& run);

    Statements statements_;
    std::unordered_map<std::int64_t, std::string> names_;
};

}  // namespace tune::tracker
