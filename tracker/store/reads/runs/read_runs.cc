// A search of runs finds rows, then loads the runs of the page. There are two ways to find them:
// SQL for any query (search_page.h), columns in memory where filter and order are on metrics
// (columnar_search.h). Both bind the same canonical query into their tokens and follow the same
// order, so a token of one way is valid for the other.

#include "tracker/store/reads/runs/read_runs.h"

#include <cmath>

#include "base/limits.h"
#include "tracker/search/filter.h"
#include "tracker/search/order_by.h"
#include "tracker/search/order_by_ties.h"
#include "tracker/store/metrics/metric_aggregates.h"
#include "tracker/store/reads/columnar_search.h"
#include "tracker/store/reads/search_page.h"

namespace tune::tracker {
namespace {

/// Dataset summaries of one answer (MLflow).
constexpr std::int64_t kDatasetSummariesMax = 1'000;

std::string run_attribute(std::string_view key) {
    if (key == "run_id") return "r.run_id";
    if (key == "run_name") return "r.name";
    if (key == "user_id") return "r.user_id";
    if (key == "artifact_uri") return "r.artifact_uri";
    if (key == "start_time") return "r.start_time_ms";
    if (key == "end_time") return "r.end_time_ms";
    return "(CASE r.status WHEN 1 THEN 'RUNNING' WHEN 2 THEN 'SCHEDULED' WHEN 3 THEN 'FINISHED' "
           "WHEN 4 THEN 'FAILED' ELSE 'KILLED' END)";
}

/// A table of (run_row, key_id, value).
search::Facet keyed_facet(const char* table) {
    search::Facet facet;
    facet.table = table;
    facet.on = [](const std::string& alias, const std::string& key) {
        return alias + ".run_row = r.run_row AND " + alias +
               ".key_id = (SELECT key_id FROM keys WHERE name = " + key + ")";
    };
    return facet;
}

/// min_value or max_value of the metrics, which is NULL when all values are NaN.
search::Facet extremum_facet(const char* column) {
    search::Facet facet = keyed_facet("latest_metrics");
    facet.value = column;
    facet.is_nan = [value = facet.value](const std::string& alias) {
        return "(" + alias + "." + value + " IS NULL AND " + alias + ".run_row IS NOT NULL)";
    };
    return facet;
}

search::Facet dataset_facet(std::string_view key) {
    search::Facet facet;
    facet.table = key == "context"
                      ? "(SELECT i.run_row, t.value FROM dataset_inputs i JOIN input_tags t ON "
                        "t.input_row = i.input_row AND t.key = 'mlflow.data.context')"
                      : "(SELECT i.run_row, d." + std::string(key == "digest" ? key : "name") +
                            " AS value FROM dataset_inputs i JOIN datasets d USING (dataset_row))";
    facet.on = [](const std::string& alias, const std::string&) {
        return alias + ".run_row = r.run_row";
    };
    return facet;
}

search::SqlSchema run_schema() {
    search::SqlSchema schema;
    schema.attribute = &run_attribute;
    schema.metric = keyed_facet("latest_metrics");
    schema.metric.is_nan = [](const std::string& alias) { return alias + ".is_nan = 1"; };
    schema.metric_min = extremum_facet("min_value");
    schema.metric_max = extremum_facet("max_value");
    schema.param = keyed_facet("params");
    schema.tag = keyed_facet("tags");
    schema.dataset = &dataset_facet;
    return schema;
}

std::vector<search::SortColumn> sort_columns(const search::SqlSchema& schema,
                                             const std::vector<search::OrderKey>& keys,
                                             search::Binder& binder) {
    std::vector<search::SortColumn> columns;
    for (const search::OrderKey& key : keys) {
        columns.push_back(search::compile_order_key(schema, key, columns.size(), binder));
        if (key.entity == search::Entity::kAttribute)
            columns.back().is_nullable = key.key == "end_time";
    }
    search::append_tie_breakers(search::Subject::kRuns, keys, &run_attribute, columns);
    return columns;
}

std::string run_life_condition(ViewType view) {
    if (view == ViewType::kAll) return "r.life IN (0, 1)";
    return view == ViewType::kActiveOnly ? "r.life = 0" : "r.life = 1";
}

std::string canonical(const SearchRuns& query) {
    std::string text =
        "runs\x1f" + query.filter + "\x1f" + std::to_string(static_cast<int>(query.view_type));
    for (const ExperimentId id : query.experiment_ids) text += "\x1f" + std::to_string(id);
    text += "\x1e";
    for (const std::string& key : query.order_by) text += "\x1f" + key;
    return text;
}

Result<RunRows> find_rows(const ReadSnapshot& snapshot, const SearchRuns& query) {
    TUNE_TRY(filter, search::parse_filter(search::Subject::kRuns, query.filter));
    TUNE_TRY(keys, search::parse_order_by(search::Subject::kRuns, query.order_by));
    if (query.experiment_ids.empty()) return RunRows{};
    TUNE_TRY_VOID(resolve_aggregates(snapshot.connection, query.experiment_ids, filter, keys));
    const search::SqlSchema schema = run_schema();
    search::Binder binder;
    const std::string runs = "r.experiment_id IN " + bind_ids(query.experiment_ids, binder) +
                             " AND " + run_life_condition(query.view_type);
    const std::string canonical_query = canonical(query);
    if (suits_columns(filter, keys)) {
        TUNE_TRY(found, columnar_search(
                            snapshot, schema,
                            {query.experiment_ids, query.view_type, runs, std::move(binder), filter,
                             keys, canonical_query, query.page_token, query.max_results}));
        return RunRows{std::move(found.rows), std::move(found.next_page_token)};
    }
    search::PageQuery page;
    page.row = "r.run_row";
    page.from = "runs r";
    page.columns = sort_columns(schema, keys, binder);
    page.where = runs + " AND " + search::compile_filter(schema, filter, binder);
    TUNE_TRY(found, fetch_page(snapshot.connection, page, std::move(binder), canonical_query,
                               query.page_token, query.max_results));
    return RunRows{std::move(found.rows), std::move(found.next_page_token)};
}

}  // namespace

Error no_run(std::string_view run_id) {
    return {Code::kResourceDoesNotExist, "Run with id=" + std::string(run_id) + " not found"};
}

Result<std::int64_t> find_run_row(sqlite::Connection& connection, std::string_view run_id) {
    TUNE_TRY(select, connection.prepare("SELECT run_row FROM runs WHERE run_id = ?"));
    TUNE_TRY(has_row, select.with(run_id).step());
    return has_row ? select.integer(0) : std::int64_t{0};
}

Result<std::optional<RunInfo>> find_run_info(sqlite::Connection& connection,
                                             std::string_view run_id) {
    TUNE_TRY(run_row, find_run_row(connection, run_id));
    if (run_row == 0) return std::optional<RunInfo>();
    TUNE_TRY(info, load_run_info(connection, run_row));
    return std::optional<RunInfo>(std::move(info));
}

Result<Run> load_run(sqlite::Connection& connection, std::string_view run_id) {
    TUNE_TRY(run_row, find_run_row(connection, run_id));
    if (run_row == 0) return no_run(run_id);
    const RunFields everything;
    TUNE_TRY(loader, RunLoader::prepare(connection, everything));
    TUNE_TRY(view, loader.load(run_row));
    return RunLoader::copy(*view);
}

Result<RunRows> find_runs(const ReadSnapshot& snapshot, const SearchRuns& query) {
    TUNE_TRY_VOID(check_max_results(query.max_results, kSearchResultsMax));
    return find_rows(snapshot, query);
}

Result<std::vector<std::int64_t>> find_all_runs(const ReadSnapshot& snapshot, SearchRuns query,
                                                std::int64_t limit) {
    query.max_results = limit;
    query.page_token.clear();
    TUNE_TRY(found, find_rows(snapshot, query));
    return std::move(found.rows);
}

Result<void> visit_runs(sqlite::Connection& connection, std::span<const std::int64_t> rows,
                        const RunFields& fields, const VisitRun& visit) {
    TUNE_TRY(loader, RunLoader::prepare(connection, fields));
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const Result<const RunView*> view = loader.load(rows[i]);
        if (!view && view.error().code == Code::kResourceDoesNotExist) continue;
        if (!view) return view.error();
        if (!visit(i, **view)) break;
    }
    return {};
}

Result<Page<Run>> search_runs(const ReadSnapshot& snapshot, const SearchRuns& query) {
    TUNE_TRY(found, find_runs(snapshot, query));
    Page<Run> page;
    page.next_page_token = std::move(found.next_page_token);
    page.items.reserve(found.rows.size());
    TUNE_TRY_VOID(
        visit_runs(snapshot.connection, found.rows, {}, [&page](std::size_t, const RunView& view) {
            page.items.push_back(RunLoader::copy(view));
            return true;
        }));
    return page;
}

Result<std::vector<DatasetSummary>> search_datasets(sqlite::Connection& connection,
                                                    std::span<const ExperimentId> experiment_ids) {
    std::vector<DatasetSummary> summaries;
    if (experiment_ids.empty()) return summaries;
    search::Binder binder;
    const std::string ids =
        bind_ids(std::vector<ExperimentId>(experiment_ids.begin(), experiment_ids.end()), binder);
    const std::string sql =
        "SELECT DISTINCT d.experiment_id, d.name, d.digest, coalesce(t.value, '') FROM datasets d "
        "JOIN dataset_inputs i ON i.dataset_row = d.dataset_row LEFT JOIN input_tags t ON "
        "t.input_row = i.input_row AND t.key = 'mlflow.data.context' WHERE d.experiment_id IN " +
        ids + " ORDER BY 1, 2, 3, 4 LIMIT " + binder.bind(kDatasetSummariesMax);
    TUNE_TRY(select, connection.prepare(sql));
    for (std::size_t i = 0; i < binder.values().size(); ++i)
        select.bind_value(static_cast<int>(i + 1), binder.values()[i]);
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return summaries;
        summaries.push_back({select.integer(0), std::string(select.text(1)),
                             std::string(select.text(2)), std::string(select.text(3))});
    }
}

}  // namespace tune::tracker
