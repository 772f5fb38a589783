// Runs of one experiment tend to have the same keys in the same order of rows, so the loader
// remembers the last run's keys and their order by name: the usual run is sorted without comparing
// a name. When that guess fails the keys are sorted anew; the guess only costs time, never
// correctness.

#include "tracker/store/reads/runs/run_loader.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tracker/store/reads/runs/read_runs.h"

namespace tune::tracker {
namespace {

constexpr std::string_view kInfoSql =
    "SELECT run_id, experiment_id, name, user_id, status, start_time_ms, end_time_ms, "
    "artifact_uri, "
    "life FROM runs WHERE run_row = ?";

Result<RunInfo> read_info(sqlite::Statement& select, std::int64_t run_row) {
    select.reset();
    TUNE_TRY(has_row, select.with(run_row).step());
    if (!has_row)
        return Error{Code::kResourceDoesNotExist, "A run's row is missing in the database."};
    RunInfo info;
    info.run_id = select.text(0);
    info.experiment_id = select.integer(1);
    info.run_name = select.text(2);
    info.user_id = select.text(3);
    info.status = static_cast<RunStatus>(select.integer(4));
    info.start_time_ms = select.integer(5);
    if (!select.is_null(6)) info.end_time_ms = select.integer(6);
    info.artifact_uri = select.text(7);
    info.lifecycle_stage = static_cast<LifecycleStage>(select.integer(8));
    return info;
}

}  // namespace

Result<RunInfo> load_run_info(sqlite::Connection& connection, std::int64_t run_row) {
    TUNE_TRY(select, connection.prepare(kInfoSql));
    return read_info(select, run_row);
}

Result<RunLoader::Keyed> RunLoader::prepare_keyed(sqlite::Connection& connection,
                                                  const KeySelection& selection,
                                                  const std::string& columns_and_table) {
    /// From this many names on, stepping over all keys of a run is cheaper than looking each up.
    constexpr std::size_t kLookUpsMax = 32;
    Keyed table;
    table.selection = &selection;
    if (selection.is_none()) return table;
    table.is_by_key =
        !selection.is_all && selection.prefixes.empty() && selection.names.size() <= kLookUpsMax;
    if (table.is_by_key) {
        std::vector<std::string> names = selection.names;
        std::sort(names.begin(), names.end());
        TUNE_TRY(find, connection.prepare("SELECT key_id FROM keys WHERE name = ?"));
        for (const std::string& name : names) {
            find.reset();
            TUNE_TRY(has_key, find.with(name).step());
            if (has_key) table.key_ids.push_back(find.integer(0));
        }
        if (table.key_ids.empty()) return table;
    }
    TUNE_TRY(select,
             connection.prepare("SELECT key_id, " + columns_and_table + " WHERE run_row = ?" +
                                (table.is_by_key ? " AND key_id = ?" : "")));
    table.select.emplace(std::move(select));
    return table;
}

Result<RunLoader> RunLoader::prepare(sqlite::Connection& connection, const RunFields& fields) {
    TUNE_TRY(info, connection.prepare(kInfoSql));
    TUNE_TRY(key, connection.prepare("SELECT name FROM keys WHERE key_id = ?"));
    TUNE_TRY(datasets,
             connection.prepare("SELECT i.input_row, d.name, d.digest, d.source_type, d.source, "
                                "d.schema, d.profile FROM dataset_inputs i "
                                "JOIN datasets d USING (dataset_row) WHERE i.run_row = ? "
                                "ORDER BY i.input_row"));
    TUNE_TRY(input_tags,
             connection.prepare("SELECT key, value FROM input_tags WHERE input_row = ?"));
    TUNE_TRY(models, connection.prepare("SELECT is_output, model_id, step FROM run_models "
                                        "WHERE run_row = ? ORDER BY is_output, position"));
    TUNE_TRY(metrics, prepare_keyed(connection, fields.metrics,
                                    "value, is_nan, timestamp_ms, step FROM latest_metrics"));
    TUNE_TRY(params, prepare_keyed(connection, fields.params, "value FROM params"));
    TUNE_TRY(tags, prepare_keyed(connection, fields.tags, "value FROM tags"));
    return RunLoader(Statements{std::move(info), std::move(key), std::move(datasets),
                                std::move(input_tags), std::move(models)},
                     std::move(metrics), std::move(params), std::move(tags), fields);
}

Result<const RunView*> RunLoader::load(std::int64_t run_row) {
    TUNE_TRY(info, read_info(statements_.info, run_row));
    view_.info = std::move(info);
    TUNE_TRY_VOID(load_metrics(run_row));
    TUNE_TRY_VOID(load_pairs(params_, run_row, view_.params));
    TUNE_TRY_VOID(load_pairs(tags_, run_row, view_.tags));
    view_.dataset_inputs.clear();
    view_.model_inputs.clear();
    view_.model_outputs.clear();
    if (fields_.inputs) TUNE_TRY_VOID(load_datasets(run_row));
    if (fields_.model_links && (fields_.inputs || fields_.outputs))
        TUNE_TRY_VOID(load_models(run_row));
    return &view_;
}

Run RunLoader::copy(const RunView& view) {
    Run run{view.info,         {}, view.params, view.tags, view.dataset_inputs, view.model_inputs,
            view.model_outputs};
    run.metrics.reserve(view.metrics.size());
    for (const MetricView& metric : view.metrics)
        run.metrics.push_back({*metric.key, metric.value, metric.timestamp_ms, metric.step});
    return run;
}

Result<const std::string*> RunLoader::name_of(std::int64_t key_id) {
    const auto [place, is_new] = names_.try_emplace(key_id);
    if (is_new) {
        statements_.key.reset();
        TUNE_TRY(has_row, statements_.key.with(key_id).step());
        if (!has_row) return Error{Code::kDataLoss, "A key's name is missing in the database."};
        place->second = statements_.key.text(0);
    }
    return &place->second;
}

Result<bool> RunLoader::is_wanted(Keyed& table, std::int64_t key_id) {
    if (table.is_by_key || table.selection->is_all) return true;
    const auto known = table.is_wanted.find(key_id);
    if (known != table.is_wanted.end()) return known->second;
    TUNE_TRY(name, name_of(key_id));
    return table.is_wanted[key_id] = table.selection->holds(*name);
}

template <class Visit>
Result<void> RunLoader::for_each_row(Keyed& table, std::int64_t run_row, const Visit& visit) {
    if (!table.select) return {};
    sqlite::Statement& select = *table.select;
    const std::size_t rounds = table.is_by_key ? table.key_ids.size() : 1;
    for (std::size_t i = 0; i < rounds; ++i) {
        select.reset();
        select.bind(1, run_row);
        if (table.is_by_key) select.bind(2, table.key_ids[i]);
        for (;;) {
            TUNE_TRY(has_row, select.step());
            if (!has_row) break;
            TUNE_TRY(wanted, is_wanted(table, select.integer(0)));
            if (wanted) TUNE_TRY_VOID(visit(select));
        }
    }
    return {};
}

template <class Item>
Result<void> RunLoader::load_pairs(Keyed& table, std::int64_t run_row, std::vector<Item>& items) {
    items.clear();
    TUNE_TRY_VOID(for_each_row(table, run_row, [&](const sqlite::Statement& row) -> Result<void> {
        TUNE_TRY(name, name_of(row.integer(0)));
        items.push_back({*name, std::string(row.text(1))});
        return {};
    }));
    sort_by_key(items);
    return {};
}

Result<void> RunLoader::load_metrics(std::int64_t run_row) {
    unsorted_.clear();
    bool is_as_last = true;
    TUNE_TRY_VOID(
        for_each_row(metrics_, run_row, [&](const sqlite::Statement& row) -> Result<void> {
            const std::int64_t key_id = row.integer(0);
            const std::size_t at = unsorted_.size();
            if (at == last_keys_.size()) last_keys_.push_back({});
            KnownKey& known = last_keys_[at];
            if (known.key_id != key_id) {
                is_as_last = false;
                TUNE_TRY(name, name_of(key_id));
                known = {key_id, name};
            }
            unsorted_.push_back({known.name, row.integer(2) != 0 ? std::nan("") : row.real(1),
                                 row.integer(3), row.integer(4)});
            return {};
        }));
    if (!is_as_last || order_.size() != unsorted_.size()) {
        last_keys_.resize(unsorted_.size());
        order_.resize(unsorted_.size());
        std::iota(order_.begin(), order_.end(), 0u);
        std::sort(order_.begin(), order_.end(), [this](std::uint32_t a, std::uint32_t b) {
            return *unsorted_[a].key < *unsorted_[b].key;
        });
    }
    view_.metrics.clear();
    for (const std::uint32_t place : order_) view_.metrics.push_back(unsorted_[place]);
    return {};
}

Result<void> RunLoader::load_datasets(std::int64_t run_row) {
    sqlite::Statement& select = statements_.datasets;
    select.reset();
    select.with(run_row);
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return {};
        DatasetInput input;
        input.dataset.name = select.text(1);
        input.dataset.digest = select.text(2);
        input.dataset.source_type = select.text(3);
        input.dataset.source = select.text(4);
        if (!select.is_null(5)) input.dataset.schema = select.text(5);
        if (!select.is_null(6)) input.dataset.profile = select.text(6);
        TUNE_TRY_VOID(load_input_tags(select.integer(0), input.tags));
        view_.dataset_inputs.push_back(std::move(input));
    }
}

Result<void> RunLoader::load_input_tags(std::int64_t input_row, std::vector<Tag>& tags) {
    sqlite::Statement& select = statements_.input_tags;
    select.reset();
    select.with(input_row);
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return {};
        tags.push_back({std::string(select.text(0)), std::string(select.text(1))});
    }
}

Result<void> RunLoader::load_models(std::int64_t run_row) {
    sqlite::Statement& select = statements_.models;
    select.reset();
    select.with(run_row);
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return {};
        std::string model_id(select.text(1));
        const bool is_output = select.integer(0) != 0;
        if (!(is_output ? fields_.outputs : fields_.inputs)) continue;
        if (!is_output)
            view_.model_inputs.push_back({std::move(model_id)});
        else
            view_.model_outputs.push_back({std::move(model_id), select.integer(2)});
    }
}

}  // namespace tune::tracker
