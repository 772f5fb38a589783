// A logged model has several values of one metric (per run and dataset), unlike a run. An order by
// a metric therefore takes the latest by time, step and run id as a subquery, restricted to the
// datasets that the order names; a filter asks whether any value matches.

#include "tracker/store/reads/read_logged_models.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/limits.h"
#include "base/text/python_text.h"
#include "tracker/search/filter.h"
#include "tracker/search/grammar/identifier.h"
#include "tracker/search/order_by_ties.h"
#include "tracker/search/page_token.h"
#include "tracker/store/reads/search_page.h"

namespace tune::tracker {
namespace {

template <class Item>
Result<void> load_pairs(sqlite::Connection& connection, const char* sql, std::int64_t model_row,
                        std::vector<Item>& items) {
    TUNE_TRY(select, connection.prepare(sql));
    select.with(model_row);
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return {};
        items.push_back({std::string(select.text(0)), std::string(select.text(1))});
    }
}

Result<void> load_metrics(sqlite::Connection& connection, std::int64_t model_row,
                          LoggedModel& model) {
    TUNE_TRY(select, connection.prepare("SELECT key, value, timestamp_ms, step, run_id, "
                                        "dataset_name, dataset_digest FROM logged_model_metrics "
                                        "WHERE model_row = ?"));
    select.with(model_row);
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return {};
        Metric metric;
        metric.key = select.text(0);
        metric.value = select.is_null(1) ? std::nan("") : select.real(1);
        metric.timestamp_ms = select.integer(2);
        metric.step = select.integer(3);
        metric.model_id = model.model_id;
        metric.run_id = select.text(4);
        metric.dataset_name = select.text(5);
        metric.dataset_digest = select.text(6);
        model.metrics.push_back(std::move(metric));
    }
}

std::string logged_model_attribute(std::string_view key) {
    if (key == "creation_time") return "m.creation_time_ms";
    if (key == "last_updated_time") return "m.last_updated_time_ms";
    if (key == "model_id") return "m.model_id";
    if (key == "model_type") return "m.model_type";
    if (key == "name") return "m.name";
    if (key == "source_run_id") return "m.source_run_id";
    if (key == "experiment_id") return "m.experiment_id";
    return "(CASE m.status WHEN 1 THEN 'PENDING' WHEN 2 THEN 'READY' WHEN 3 THEN 'UPLOAD_FAILED' "
           "ELSE 'UNSPECIFIED' END)";
}

/// "(f.dataset_name = ? AND f.dataset_digest = ?) OR ..."; empty without datasets.
std::string dataset_condition(const std::vector<DatasetFilter>& datasets, search::Binder& binder) {
    std::string condition;
    for (const DatasetFilter& dataset : datasets) {
        std::string one = "f.dataset_name = " + binder.bind(dataset.dataset_name);
        if (!dataset.dataset_digest.empty())
            one += " AND f.dataset_digest = " + binder.bind(dataset.dataset_digest);
        condition += (condition.empty() ? "(" : " OR (") + one + ")";
    }
    return condition.empty() ? condition : " AND (" + condition + ")";
}

search::Facet keyed_facet(const char* table, const std::string& condition) {
    search::Facet facet;
    facet.table = table;
    facet.on = [condition](const std::string& alias, const std::string& key) {
        return alias + ".model_row = m.model_row AND " + alias + ".key = " + key + condition;
    };
    return facet;
}

search::SqlSchema model_schema(const std::string& datasets) {
    search::SqlSchema schema;
    schema.attribute = &logged_model_attribute;
    schema.metric = keyed_facet("logged_model_metrics", datasets);
    schema.param = keyed_facet("logged_model_params", "");
    schema.tag = keyed_facet("logged_model_tags", "");
    schema.is_integer_text = [](std::string_view key) { return key == "experiment_id"; };
    return schema;
}

/// The latest value of a metric by timestamp, step, run; NaN sorts with the missing ones.
search::SortColumn metric_column(const LoggedModelOrder& order, std::string_view key,
                                 search::Binder& binder) {
    std::string condition;
    if (!order.dataset_name.empty())
        condition += " AND f.dataset_name = " + binder.bind(order.dataset_name);
    if (!order.dataset_digest.empty())
        condition += " AND f.dataset_digest = " + binder.bind(order.dataset_digest);
    search::SortColumn column;
    column.value =
        "(SELECT f.value FROM logged_model_metrics f WHERE f.model_row = m.model_row AND f.key = " +
        binder.bind(std::string(key)) + condition +
        " ORDER BY f.timestamp_ms DESC, f.step DESC, f.run_id LIMIT 1)";
    column.is_ascending = order.is_ascending;
    return column;
}

Result<std::vector<search::SortColumn>> sort_columns(const std::vector<LoggedModelOrder>& orders,
                                                     search::Binder& binder) {
    constexpr std::string_view kMetrics = "metrics.";
    if (orders.size() > search::kOrderKeysMax)
        return invalid_parameter("order_by has too many keys.");
    const auto attributes = search::orderable_attributes(search::Subject::kLoggedModels);
    std::vector<search::SortColumn> columns;
    std::vector<std::string_view> sorted_by;
    for (const LoggedModelOrder& order : orders) {
        const std::string_view name = order.field_name;
        if (name.starts_with(kMetrics)) {
            columns.push_back(metric_column(order, name.substr(kMetrics.size()), binder));
            continue;
        }
        if (name.find('.') != std::string_view::npos)
            return invalid_parameter("Invalid order by field name: " + order.field_name +
                                     ". Only metrics are supported.");
        const search::Attribute* known = search::find_attribute(attributes, name);
        if (known == nullptr)
            return invalid_parameter("Invalid order by field name: " + order.field_name);
        columns.push_back(
            {logged_model_attribute(known->canonical), false, order.is_ascending, false});
        sorted_by.push_back(known->canonical);
    }
    const auto is_key = [&sorted_by](std::string_view name) {
        return std::find(sorted_by.begin(), sorted_by.end(), name) != sorted_by.end();
    };
    search::append_tie_breakers(search::Subject::kLoggedModels, is_key, &logged_model_attribute,
                                columns);
    return columns;
}

/// Statuses are written READY or LOGGED_MODEL_READY.
void shorten_statuses(search::Condition& filter) {
    constexpr std::string_view kPrefix = "LOGGED_MODEL_";
    const auto shorten = [&](std::string& text) {
        if (text.starts_with(kPrefix)) text.erase(0, kPrefix.size());
    };
    search::for_each_clause(filter, [&shorten](search::Clause& clause) {
        if (clause.entity != search::Entity::kAttribute || clause.key != "status") return;
        if (auto* text = std::get_if<std::string>(&clause.value)) shorten(*text);
        if (auto* list = std::get_if<std::vector<std::string>>(&clause.value))
            for (std::string& text : *list) shorten(text);
    });
}

std::string canonical(const SearchLoggedModels& query) {
    std::string text = "models\x1f" + query.filter;
    for (const ExperimentId id : query.experiment_ids) text += "\x1f" + std::to_string(id);
    for (const DatasetFilter& dataset : query.datasets)
        text += "\x1e" + dataset.dataset_name + "\x1f" + dataset.dataset_digest;
    for (const LoggedModelOrder& order : query.order_by)
        text += "\x1d" + order.field_name + (order.is_ascending ? "\x1f+" : "\x1f-") +
                order.dataset_name + "\x1f" + order.dataset_digest;
    return text;
}

// --- page tokens, whose sentences name what differs ----------------------------------------------

Json text_or_null(const std::string& text) {
    return text.empty() ? Json() : Json(text);
}

Json scope_of(const SearchLoggedModels& query) {
    Json ids = Json::array();
    for (const ExperimentId id : query.experiment_ids) ids.push_back(std::to_string(id));
    Json orders = Json::array();
    for (const LoggedModelOrder& order : query.order_by)
        orders.push_back({{"field_name", order.field_name},
                          {"ascending", order.is_ascending},
                          {"dataset_name", text_or_null(order.dataset_name)},
                          {"dataset_digest", text_or_null(order.dataset_digest)}});
    return {{"experiment_ids", ids},
            {"filter_string", text_or_null(query.filter)},
            {"order_by", orders.empty() ? Json() : orders}};
}

/// As Python prints it, the keys of an order as MLflow has them.
std::string in_python(const Json& value) {
    const bool is_orders = value.is_array() && !value.empty() && value[0].is_object();
    if (!is_orders) return python_text(value);
    std::string text;
    for (const Json& order : value) {
        text += text.empty() ? "[{" : ", {";
        for (const char* key : {"field_name", "ascending", "dataset_name", "dataset_digest"}) {
            const std::string one = python_text(Json::array({order.value(key, Json())}));
            if (!text.ends_with('{')) text += ", ";
            text += python_repr(key) + ": " + one.substr(1, one.size() - 2);
        }
        text += "}";
    }
    return text + "]";
}

/// The page token within the one that the client sent. Errors: kInvalidParameterValue in MLflow's
/// words, for another search's.
Result<std::string> inner_token(const SearchLoggedModels& query) {
    if (query.page_token.empty()) return std::string();
    struct Part {
        const char* key;
        const char* found;
        const char* wanted;
    };
    constexpr std::array<Part, 3> kParts = {
        {{"experiment_ids", "Experiment IDs in the page token do not match the requested ",
          "experiment IDs"},
         {"filter_string", "Filter string in the page token does not match the requested ",
          "filter string"},
         {"order_by", "Order by in the page token does not match the requested ", "order by"}}};
    TUNE_TRY(scoped, search::read_scoped_token(query.page_token));
    TUNE_TRY(scope, parse_json(scoped.scope));
    const Json wanted = scope_of(query);
    for (const auto& [key, begin, name] : kParts) {
        const Json found = scope.is_object() ? scope.value(key, Json()) : Json();
        if (found != wanted[key])
            return invalid_parameter(std::string(begin) + name + ". Expected: " +
                                     in_python(wanted[key]) + ". Found: " + in_python(found));
    }
    return std::move(scoped.token);
}

}  // namespace

Error no_logged_model(std::string_view model_id) {
    return {Code::kResourceDoesNotExist,
            "Logged model with ID '" + std::string(model_id) + "' not found."};
}

Result<LoggedModel> load_logged_model(sqlite::Connection& connection, std::int64_t model_row) {
    TUNE_TRY(select, connection.prepare(
                         "SELECT model_id, experiment_id, name, artifact_uri, creation_time_ms, "
                         "last_updated_time_ms, status, status_message, model_type, source_run_id "
                         "FROM logged_models WHERE model_row = ?"));
    TUNE_TRY(has_row, select.with(model_row).step());
    if (!has_row) return Error{Code::kDataLoss, "A model's row is missing in the database."};
    LoggedModel model;
    model.model_id = select.text(0);
    model.experiment_id = select.integer(1);
    model.name = select.text(2);
    model.artifact_uri = select.text(3);
    model.creation_time_ms = select.integer(4);
    model.last_updated_time_ms = select.integer(5);
    model.status = static_cast<LoggedModelStatus>(select.integer(6));
    model.status_message = select.text(7);
    model.model_type = select.text(8);
    model.source_run_id = select.text(9);
    TUNE_TRY_VOID(load_pairs(connection,
                             "SELECT key, value FROM logged_model_tags WHERE model_row = ?",
                             model_row, model.tags));
    TUNE_TRY_VOID(load_pairs(connection,
                             "SELECT key, value FROM logged_model_params WHERE model_row = ?",
                             model_row, model.params));
    TUNE_TRY_VOID(load_metrics(connection, model_row, model));
    return model;
}

Result<LoggedModel> get_logged_model(sqlite::Connection& connection, std::string_view model_id) {
    TUNE_TRY(select, connection.prepare("SELECT model_row FROM logged_models "
                                        "WHERE model_id = ? AND life = 0"));
    TUNE_TRY(has_row, select.with(model_id).step());
    if (!has_row) return no_logged_model(model_id);
    return load_logged_model(connection, select.integer(0));
}

Result<Page<LoggedModel>> search_logged_models(sqlite::Connection& connection,
                                               const SearchLoggedModels& query) {
    TUNE_TRY_VOID(check_max_results(query.max_results, kSearchResultsMax));
    for (const DatasetFilter& dataset : query.datasets)
        if (dataset.dataset_name.empty())
            return invalid_parameter("`dataset_name` in the `datasets` clause must be specified.");
    TUNE_TRY(token, inner_token(query));
    TUNE_TRY(filter, search::parse_filter(search::Subject::kLoggedModels, query.filter));
    shorten_statuses(filter);
    Page<LoggedModel> page;
    search::Binder binder;
    TUNE_TRY(columns, sort_columns(query.order_by, binder));
    if (query.experiment_ids.empty()) return page;
    const std::string datasets = dataset_condition(query.datasets, binder);
    search::PageQuery page_query;
    page_query.row = "m.model_row";
    page_query.from = "logged_models m";
    page_query.columns = std::move(columns);
    page_query.where = "m.experiment_id IN " + bind_ids(query.experiment_ids, binder) +
                       " AND m.life = 0 AND " +
                       search::compile_filter(model_schema(datasets), filter, binder);
    if (!datasets.empty())
        page_query.where +=
            " AND EXISTS (SELECT 1 FROM logged_model_metrics f "
            "WHERE f.model_row = m.model_row" +
            datasets + ")";
    TUNE_TRY(rows, fetch_page(connection, page_query, std::move(binder), canonical(query), token,
                              query.max_results));
    if (!rows.next_page_token.empty())
        page.next_page_token =
            search::make_scoped_token({to_text(scope_of(query)), std::move(rows.next_page_token)});
    for (const std::int64_t row : rows.rows) {
        TUNE_TRY(model, load_logged_model(connection, row));
        page.items.push_back(std::move(model));
    }
    return page;
}

}  // namespace tune::tracker
