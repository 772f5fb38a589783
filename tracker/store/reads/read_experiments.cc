// Names are unique among active experiments only, so a read by name chooses: the active one, else
// the one that was deleted last. A search finds ids first and loads each experiment after, in the
// same snapshot; the order of ties is in search/order_by_ties.h.

#include "tracker/store/reads/read_experiments.h"

#include "base/limits.h"
#include "tracker/search/filter.h"
#include "tracker/search/order_by.h"
#include "tracker/search/order_by_ties.h"
#include "tracker/store/permissions/read_permissions.h"
#include "tracker/store/reads/search_page.h"

namespace tune::tracker {
namespace {

constexpr std::string_view kColumns =
    "SELECT experiment_id, name, artifact_location, life, creation_time_ms, last_update_time_ms "
    "FROM experiments WHERE ";

Result<void> load_tags(sqlite::Connection& connection, Experiment& experiment) {
    TUNE_TRY(select, connection.prepare("SELECT key, value FROM experiment_tags "
                                        "WHERE experiment_id = ? ORDER BY key"));
    select.with(experiment.experiment_id);
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return {};
        experiment.tags.push_back({std::string(select.text(0)), std::string(select.text(1))});
    }
}

Result<std::optional<Experiment>> read_one(sqlite::Connection& connection,
                                           sqlite::Statement& select) {
    TUNE_TRY(has_row, select.step());
    if (!has_row) return std::optional<Experiment>();
    Experiment experiment;
    experiment.experiment_id = select.integer(0);
    experiment.name = select.text(1);
    experiment.artifact_location = select.text(2);
    experiment.lifecycle_stage = static_cast<LifecycleStage>(select.integer(3));
    experiment.creation_time_ms = select.integer(4);
    experiment.last_update_time_ms = select.integer(5);
    TUNE_TRY_VOID(load_tags(connection, experiment));
    return std::optional<Experiment>(std::move(experiment));
}

std::string experiment_attribute(std::string_view key) {
    if (key == "creation_time") return "e.creation_time_ms";
    if (key == "last_update_time") return "e.last_update_time_ms";
    if (key == "experiment_id") return "e.experiment_id";
    return "e.name";
}

search::SqlSchema experiment_schema() {
    search::SqlSchema schema;
    schema.attribute = &experiment_attribute;
    schema.tag.table = "experiment_tags";
    schema.tag.on = [](const std::string& alias, const std::string& key) {
        return alias + ".experiment_id = e.experiment_id AND " + alias + ".key = " + key;
    };
    schema.is_integer_text = [](std::string_view key) { return key == "experiment_id"; };
    return schema;
}

std::vector<search::SortColumn> sort_columns(const std::vector<search::OrderKey>& keys) {
    std::vector<search::SortColumn> columns;
    for (const search::OrderKey& key : keys)
        columns.push_back({experiment_attribute(key.key), false, key.is_ascending, false});
    search::append_tie_breakers(search::Subject::kExperiments, keys, &experiment_attribute,
                                columns);
    return columns;
}

std::string experiment_life_condition(ViewType view) {
    if (view == ViewType::kAll) return "1";
    return view == ViewType::kActiveOnly ? "e.life = 0" : "e.life = 1";
}

std::string canonical(const SearchExperiments& query) {
    std::string text = "experiments\x1f" + query.filter + "\x1f" +
                       std::to_string(static_cast<int>(query.view_type));
    for (const std::string& key : query.order_by) text += "\x1f" + key;
    return text;
}

}  // namespace

Error no_experiment(ExperimentId experiment_id) {
    return {Code::kResourceDoesNotExist,
            "No Experiment with id=" + std::to_string(experiment_id) + " exists"};
}

Result<std::optional<Experiment>> find_experiment(sqlite::Connection& connection,
                                                  ExperimentId experiment_id) {
    static const std::string sql = std::string(kColumns) + "experiment_id = ?";
    TUNE_TRY(select, connection.prepare(sql));
    return read_one(connection, select.with(experiment_id));
}

Result<std::optional<Experiment>> find_experiment_by_name(sqlite::Connection& connection,
                                                          std::string_view name) {
    // Deleted ones share names: the active one, or else the one that was deleted last.
    static const std::string sql =
        std::string(kColumns) +
        "name = ? ORDER BY life, last_update_time_ms DESC, experiment_id DESC LIMIT 1";
    TUNE_TRY(select, connection.prepare(sql));
    return read_one(connection, select.with(name));
}

Result<Page<Experiment>> search_experiments(sqlite::Connection& connection,
                                            const SearchExperiments& query) {
    TUNE_TRY_VOID(check_max_results(query.max_results, kSearchResultsMax));
    TUNE_TRY(filter, search::parse_filter(search::Subject::kExperiments, query.filter));
    TUNE_TRY(keys, search::parse_order_by(search::Subject::kExperiments, query.order_by));
    search::Binder binder;
    search::PageQuery page_query;
    page_query.row = "e.experiment_id";
    page_query.from = "experiments e";
    page_query.columns = sort_columns(keys);
    page_query.where = experiment_life_condition(query.view_type) + " AND " +
                       search::compile_filter(experiment_schema(), filter, binder);
    if (query.visible_to) {
        TUNE_TRY(may_read, visible_condition(connection, *query.visible_to,
                                             ResourceType::kExperiment, "e.experiment_id", binder));
        page_query.where += " AND " + may_read;
    }
    TUNE_TRY(rows, fetch_page(connection, page_query, std::move(binder), canonical(query),
                              query.page_token, query.max_results));
    Page<Experiment> page;
    page.next_page_token = std::move(rows.next_page_token);
    for (const std::int64_t id : rows.rows) {
        TUNE_TRY(experiment, find_experiment(connection, id));
        if (experiment) page.items.push_back(std::move(*experiment));
    }
    return page;
}

Result<std::vector<ExperimentStatistics>> experiment_statistics(sqlite::Connection& connection) {
    TUNE_TRY(select,
             connection.prepare(
                 "SELECT e.experiment_id, count(r.run_row), coalesce(sum(r.status = 1), 0), "
                 "max(e.last_update_time_ms, coalesce(max(r.start_time_ms), 0), "
                 "coalesce(max(r.end_time_ms), 0)) FROM experiments e "
                 "LEFT JOIN runs r ON r.experiment_id = e.experiment_id AND r.life = 0 "
                 "WHERE e.life = 0 GROUP BY e.experiment_id"));
    std::vector<ExperimentStatistics> all;
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return all;
        all.push_back({select.integer(0), select.integer(1), select.integer(2), select.integer(3)});
    }
}

}  // namespace tune::tracker
