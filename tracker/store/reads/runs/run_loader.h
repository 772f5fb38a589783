#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tracker/sqlite/connection.h"
#include "tracker/store/reads/runs/run_fields.h"
#include "tracker/store/types.h"

namespace tune::tracker {

/// Errors: kResourceDoesNotExist if there is no such row.
[[nodiscard]] Result<RunInfo> load_run_info(sqlite::Connection& connection, std::int64_t run_row);

/// The latest value of a metric, without copies: a page of runs has hundreds of thousands.
struct MetricView {
    const std::string* key = nullptr;  // the loader's
    double value = 0;
    std::int64_t timestamp_ms = 0;
    std::int64_t step = 0;
};

/// A run as in `Run`, or the parts of it that were asked for. Lists are sorted by key.
struct RunView {
    RunInfo info;
    std::vector<MetricView> metrics;
    std::vector<Param> params;
    std::vector<Tag> tags;
    std::vector<DatasetInput> dataset_inputs;
    std::vector<ModelInput> model_inputs;
    std::vector<ModelOutput> model_outputs;
};

/// Loads runs by row. Holds its statements and the names of the keys it met, so that a page of
/// 1,000 runs prepares and looks up each once. Cost: up to six index look-ups per run, and a step
/// per metric, param and tag that is asked for (a few named ones: a look-up each, whatever the run
/// has). Not thread-safe.
class RunLoader {
public:
    /// `fields` is kept by reference.
    [[nodiscard]] static Result<RunLoader> prepare(sqlite::Connection& connection,
                                                   const RunFields& fields);
    /// Valid until the next load and no longer than the loader. Errors:
    /// kResourceDoesNotExist if there is no such row.
    [[nodiscard]] Result<const RunView*> load(std::int64_t run_row);

    /// The view as a value.
    [[nodiscard]] static Run copy(const RunView& view);

private:
    struct Statements {
        sqlite::Statement info, key, datasets, input_tags, models;
    };
    /// One of the three tables of (run_row, key_id, ...).
    struct Keyed {
        std::optional<sqlite::Statement> select;  // none: nothing is wanted
        const KeySelection* selection = nullptr;
        /// The wanted keys, each looked up by itself; empty: all rows of the run are stepped over.
        std::vector<std::int64_t> key_ids;
        bool is_by_key = false;
        /// Whether a key met on the way is wanted.
        std::unordered_map<std::int64_t, bool> is_wanted;
    };
    RunLoader(Statements statements, Keyed metrics, Keyed params, Keyed tags,
              const RunFields& fields)
        : statements_(std::move(statements)),
          fields_(fields),
          metrics_(std::move(metrics)),
          params_(std::move(params)),
          tags_(std::move(tags)) {}

    [[nodiscard]] static Result<Keyed> prepare_keyed(sqlite::Connection& connection,
                                                     const KeySelection& selection,
                                                     const std::string& columns_and_table);
    [[nodiscard]] Result<const std::string*> name_of(std::int64_t key_id);
    [[nodiscard]] Result<bool> is_wanted(Keyed& table, std::int64_t key_id);
    /// Calls take(statement) -> Result<void> for each wanted row.
    template <class Visit>
    [[nodiscard]] Result<void> for_each_row(Keyed& table, std::int64_t run_row, const Visit& visit);
    template <class Item>
    [[nodiscard]] Result<void> load_pairs(Keyed& table, std::int64_t run_row,
                                          std::vector<Item>& items);
    [[nodiscard]] Result<void> load_metrics(std::int64_t run_row);
    [[nodiscard]] Result<void> load_datasets(std::int64_t run_row);
    [[nodiscard]] Result<void> load_input_tags(std::int64_t input_row, std::vector<Tag>& tags);
    [[nodiscard]] Result<void> load_models(std::int64_t run_row);

    Statements statements_;
    const RunFields& fields_;
    Keyed metrics_, params_, tags_;
    std::unordered_map<std::int64_t, std::string> names_;
    RunView view_;

    /// Runs of one experiment tend to have the same metrics: the keys of the last run by position
    /// in the table, and the order that sorts them by name.
    struct KnownKey {
        std::int64_t key_id = 0;
        const std::string* name = nullptr;
    };
    std::vector<KnownKey> last_keys_;
    std::vector<std::uint32_t> order_;
    std::vector<MetricView> unsorted_;
};

}  // namespace tune::tracker
