#include "tracker/store/run_loader.h"

#include <cmath>

#include "tracker/store/read_runs.h"

namespace tune::tracker {
namespace {

constexpr std::string_view kInfoSql =
    "SELECT run_id, experiment_id, name, user_id, status, start_time_ms, end_time_ms, "
    "artifact_uri, "
    "life FROM runs WHERE run_row = ?";

Result<RunInfo> read_info(sqlite::Statement& select, std::int64_t run_row) {
    select.reset();
    TUNE_TRY(has_row, select.with(run_row).step());
    if (!has_row) return Error{Code::kDataLoss, "A run's row is missing in the data base."};
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

Result<RunLoader> RunLoader::prepare(sqlite::Connection& connection) {
    TUNE_TRY(info, connection.prepare(kInfoSql));
    TUNE_TRY(key, connection.prepare("SELECT name FROM keys WHERE key_id = ?"));
    TUNE_TRY(metrics, connection.prepare("SELECT key_id, value, is_nan, timestamp_ms, step "
                                         "FROM latest_metrics WHERE run_row = ?"));
    TUNE_TRY(params, connection.prepare("SELECT key_id, value FROM params WHERE run_row = ?"));
    TUNE_TRY(tags, connection.prepare("SELECT key_id, value FROM tags WHERE run_row = ?"));
    TUNE_TRY(datasets,
             connection.prepare("SELECT i.input_row, d.name, d.digest, d.source_type, d.source, "
                                "d.schema, d.profile FROM dataset_inputs i "
                                "JOIN datasets d USING (dataset_row) WHERE i.run_row = ? "
                                "ORDER BY i.input_row"));
    TUNE_TRY(input_tags,
             connection.prepare("SELECT key, value FROM input_tags WHERE input_row = ?"));
    TUNE_TRY(models, connection.prepare("SELECT is_output, model_id, step FROM run_models "
                                        "WHERE run_row = ? ORDER BY is_output, position"));
    return RunLoader(Statements{std::move(info), std::move(key), std::move(metrics),
                                std::move(params), std::move(tags), std::move(datasets),
                                std::move(input_tags), std::move(models)});
}

Result<Run> RunLoader::load(std::int64_t run_row) {
    Run run;
    TUNE_TRY(info, read_info(statements_.info, run_row));
    run.info = std::move(info);
    TUNE_TRY_VOID(load_metrics(run_row, run));
    TUNE_TRY_VOID(load_pairs(statements_.params, run_row, run.params));
    TUNE_TRY_VOID(load_pairs(statements_.tags, run_row, run.tags));
    TUNE_TRY_VOID(load_datasets(run_row, run));
    TUNE_TRY_VOID(load_models(run_row, run));
    return run;
}

Result<const std::string*> RunLoader::name_of(std::int64_t key_id) {
    const auto [place, is_new] = names_.try_emplace(key_id);
    if (is_new) {
        statements_.key.reset();
        TUNE_TRY(has_row, statements_.key.with(key_id).step());
        if (!has_row) return Error{Code::kDataLoss, "A key's name is missing in the data base."};
        place->second = statements_.key.text(0);
    }
    return &place->second;
}

template <class Item>
Result<void> RunLoader::load_pairs(sqlite::Statement& select, std::int64_t run_row,
                                   std::vector<Item>& items) {
    select.reset();
    select.with(run_row);
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) break;
        TUNE_TRY(name, name_of(select.integer(0)));
        items.push_back({*name, std::string(select.text(1))});
    }
    sort_by_key(items);
    return {};
}

Result<void> RunLoader::load_metrics(std::int64_t run_row, Run& run) {
    sqlite::Statement& select = statements_.metrics;
    select.reset();
    select.with(run_row);
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) break;
        Metric metric;
        TUNE_TRY(name, name_of(select.integer(0)));
        metric.key = *name;
        metric.value = select.integer(2) != 0 ? std::nan("") : select.real(1);
        metric.timestamp_ms = select.integer(3);
        metric.step = select.integer(4);
        run.metrics.push_back(std::move(metric));
    }
    sort_by_key(run.metrics);
    return {};
}

Result<void> RunLoader::load_datasets(std::int64_t run_row, Run& run) {
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
        run.dataset_inputs.push_back(std::move(input));
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

Result<void> RunLoader::load_models(std::int64_t run_row, Run& run) {
    sqlite::Statement& select = statements_.models;
    select.reset();
    select.with(run_row);
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return {};
        std::string model_id(select.text(1));
        if (select.integer(0) == 0)
            run.model_inputs.push_back({std::move(model_id)});
        else
            run.model_outputs.push_back({std::move(model_id), select.integer(2)});
    }
}

}  // namespace tune::tracker
