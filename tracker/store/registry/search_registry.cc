// The two searches of the model registry. Both orders that clients ask for are ranges of an index
// that begins with the mark of prompts, so leaving prompts out costs nothing.

#include <algorithm>

#include "base/text/text.h"
#include "tracker/search/filter.h"
#include "tracker/search/order_by.h"
#include "tracker/search/order_by_ties.h"
#include "tracker/store/permissions/read_permissions.h"
#include "tracker/store/reads/search_page.h"
#include "tracker/store/registry/read_registry.h"

namespace tune::tracker {
namespace {

using search::Clause;
using search::Comparator;
using search::Condition;
using search::Entity;

Result<void> check_limit(std::int64_t max_results, std::int64_t limit) {
    if (max_results < 1)
        return Error{Code::kInvalidParameterValue,
                     "Invalid value for max_results. It must be a positive integer, but got " +
                         std::to_string(max_results)};
    if (max_results > limit)
        return Error{Code::kInvalidParameterValue,
                     "Invalid value for request parameter max_results. It must be at most " +
                         std::to_string(limit) + ", but got value " + std::to_string(max_results)};
    return {};
}

bool names_prompts(const Clause& clause) {
    return clause.entity == Entity::kTag && clause.key == kIsPromptTag;
}

/// What a filter says of prompts.
enum class Prompts {
    kHidden,   // nothing, or that it wants none
    kMarked,   // tag = 'true', which the mark of the index stands for
    kAsTagged  // another way to ask for them
};

/// Without prompts every clause on the tag holds: models do not have it, and MLflow's client adds
/// one that would never hold (!= 'true').
void drop_prompt_clauses(Condition& filter) {
    if (filter.kind == Condition::Kind::kClause && names_prompts(filter.clause))
        filter = Condition{};
    for (Condition& part : filter.parts) drop_prompt_clauses(part);
}

/// The first clause on the tag decides, as in MLflow. Clauses that the answer makes superfluous are
/// taken out of `filter`.
Prompts take_prompts(Condition& filter) {
    const Clause* first = nullptr;
    for_each_clause(filter, [&](const Clause& clause) {
        if (first == nullptr && names_prompts(clause)) first = &clause;
    });
    const auto* value = first != nullptr ? std::get_if<std::string>(&first->value) : nullptr;
    const std::string text = value != nullptr ? *value : "";
    const std::string lower = lower_ascii(text);
    const bool is_equal = first != nullptr && first->comparator == Comparator::kEqual;
    const bool is_unequal = first != nullptr && first->comparator == Comparator::kNotEqual;
    if (!(is_equal && lower == "true") && !(is_unequal && lower == "false")) {
        drop_prompt_clauses(filter);
        return Prompts::kHidden;
    }
    if (!is_equal || text != "true") return Prompts::kAsTagged;
    const auto marked = std::find_if(filter.parts.begin(), filter.parts.end(),
                                     [&](const Condition& part) { return &part.clause == first; });
    if (filter.kind != Condition::Kind::kAnd || marked == filter.parts.end())
        return Prompts::kAsTagged;
    filter.parts.erase(marked);
    return Prompts::kMarked;
}

/// The filter asks for a few values of `key`, which has an index of its own.
bool picks(const Condition& filter, std::string_view key) {
    const auto is_pick = [key](const Condition& part) {
        const Clause& clause = part.clause;
        return part.kind == Condition::Kind::kClause && clause.entity == Entity::kAttribute &&
               clause.key == key &&
               (clause.comparator == Comparator::kEqual || clause.comparator == Comparator::kIn);
    };
    if (filter.kind == Condition::Kind::kAnd)
        return std::any_of(filter.parts.begin(), filter.parts.end(), is_pick);
    return is_pick(filter);
}

search::Facet tag_facet(const std::string& table, const std::string& row) {
    search::Facet facet;
    facet.table = table;
    facet.on = [row](const std::string& alias, const std::string& key) {
        return alias + "." + row + " = m." + row + " AND " + alias + ".key = " + key;
    };
    return facet;
}

std::string model_attribute(std::string_view key) {
    return key == "name" ? "m.name" : "m.last_updated_time_ms";
}

std::string version_attribute(std::string_view key) {
    if (key == "name") return "m.name";
    if (key == "run_id") return "m.run_id";
    if (key == "source_path") return "m.source";
    if (key == "version_number") return "m.version";
    if (key == "creation_timestamp") return "m.creation_time_ms";
    return "m.last_updated_time_ms";
}

search::SortColumn column_of(std::string value, bool is_ascending) {
    search::SortColumn column;
    column.value = std::move(value);
    column.is_ascending = is_ascending;
    column.is_nullable = false;
    return column;
}

std::vector<search::SortColumn> columns_of(search::Subject subject,
                                           const std::vector<search::OrderKey>& keys,
                                           std::string (*attribute)(std::string_view)) {
    std::vector<search::SortColumn> columns;
    for (const search::OrderKey& key : keys)
        columns.push_back(column_of(attribute(key.key), key.is_ascending));
    search::append_tie_breakers(subject, keys, attribute, columns);
    return columns;
}

/// Cuts a search of models, or of their versions, to what its asker may read.
Result<void> add_visibility(sqlite::Connection& connection, const std::optional<Viewer>& visible_to,
                            bool is_of_versions, search::PageQuery& page_query,
                            search::Binder& binder) {
    if (!visible_to) return {};
    const auto condition = [&](ResourceType model, ResourceType version) -> Result<std::string> {
        if (is_of_versions && visible_to->is_denied(version)) return std::string("0");
        return visible_condition(connection, *visible_to, model, "m.name", binder);
    };
    TUNE_TRY(of_prompts, condition(ResourceType::kPrompt, ResourceType::kPromptVersion));
    TUNE_TRY(of_models,
             condition(ResourceType::kRegisteredModel, ResourceType::kRegisteredModelVersion));
    page_query.where +=
        " AND CASE WHEN EXISTS (SELECT 1 FROM registered_model_tags p WHERE p.registered_row = "
        "m.registered_row AND p.key = '" +
        std::string(kIsPromptTag) + "' AND lower(p.value) = 'true') THEN " + of_prompts + " ELSE " +
        of_models + " END";
    return {};
}

template <class Query>
std::string canonical(std::string_view kind, const Query& query) {
    std::string text = std::string(kind) + "\x1f" + query.filter;
    for (const std::string& order : query.order_by) text += "\x1f" + order;
    return text;
}

}  // namespace

Result<Page<RegisteredModel>> search_registered_models(sqlite::Connection& connection,
                                                       const SearchRegisteredModels& query) {
    constexpr search::Subject kSubject = search::Subject::kRegisteredModels;
    TUNE_TRY_VOID(check_limit(query.max_results, kRegisteredModelsResultsMax));
    TUNE_TRY(filter, search::parse_filter(kSubject, query.filter));
    TUNE_TRY(keys, search::parse_order_by(kSubject, query.order_by));
    const Prompts prompts = take_prompts(filter);
    search::SqlSchema schema;
    schema.attribute = &model_attribute;
    schema.tag = tag_facet("registered_model_tags", "registered_row");
    search::Binder binder;
    search::PageQuery page_query;
    page_query.row = "m.registered_row";
    page_query.from = "registered_models m";
    page_query.columns = columns_of(kSubject, keys, &model_attribute);
    // "+" keeps the planner from walking the whole order for a few names.
    const std::string mark = picks(filter, "name") ? "+m.is_prompt" : "m.is_prompt";
    page_query.where = prompts == Prompts::kHidden   ? mark + " = 0 AND "
                       : prompts == Prompts::kMarked ? mark + " = 1 AND "
                                                     : "";
    page_query.where += search::compile_filter(schema, filter, binder);
    TUNE_TRY_VOID(add_visibility(connection, query.visible_to, false, page_query, binder));
    TUNE_TRY(rows, fetch_page(connection, page_query, std::move(binder),
                              canonical("registered models", query), query.page_token,
                              query.max_results));
    Page<RegisteredModel> page;
    page.next_page_token = std::move(rows.next_page_token);
    for (const std::int64_t row : rows.rows) {
        TUNE_TRY(model, load_registered_model(connection, row, LatestOrder::kByStageName));
        page.items.push_back(std::move(model));
    }
    return page;
}

Result<Page<ModelVersion>> search_model_versions(sqlite::Connection& connection,
                                                 const SearchModelVersions& query) {
    constexpr search::Subject kSubject = search::Subject::kModelVersions;
    TUNE_TRY_VOID(check_limit(query.max_results, kModelVersionsResultsMax));
    TUNE_TRY(filter, search::parse_filter(kSubject, query.filter));
    TUNE_TRY(keys, search::parse_order_by(kSubject, query.order_by));
    if (keys.empty()) {
        search::OrderKey newest;
        newest.key = "last_updated_timestamp";
        newest.is_ascending = false;
        keys.push_back(std::move(newest));
    }
    // The mark of versions is that of their model, so the tag itself is still looked at.
    Condition without_prompts = filter;
    const Prompts prompts = take_prompts(without_prompts);
    search::SqlSchema schema;
    schema.attribute = &version_attribute;
    schema.tag = tag_facet("model_version_tags", "version_row");
    search::Binder binder;
    search::PageQuery page_query;
    page_query.row = "m.version_row";
    // The planner prefers walking the whole order, without sorting, to the versions of one model or
    // run.
    const bool is_of_name = picks(filter, "name");
    page_query.from =
        is_of_name ? "model_versions m INDEXED BY model_versions_by_name" : "model_versions m";
    page_query.columns = columns_of(kSubject, keys, &version_attribute);
    page_query.where = !is_of_name && picks(filter, "run_id") ? "+m.visibility" : "m.visibility";
    page_query.where += prompts == Prompts::kHidden   ? " = 0 AND "
                        : prompts == Prompts::kMarked ? " = 1 AND "
                                                      : " IN (0, 1) AND ";
    page_query.where += search::compile_filter(
        schema, prompts == Prompts::kHidden ? without_prompts : filter, binder);
    TUNE_TRY_VOID(add_visibility(connection, query.visible_to, true, page_query, binder));
    TUNE_TRY(rows,
             fetch_page(connection, page_query, std::move(binder),
                        canonical("model versions", query), query.page_token, query.max_results));
    Page<ModelVersion> page;
    page.next_page_token = std::move(rows.next_page_token);
    for (const std::int64_t row : rows.rows) {
        TUNE_TRY(version, load_version(connection, row, false));
        page.items.push_back(std::move(version));
    }
    return page;
}

// --- the public face -----------------------------------------------------------------------------

Result<Page<RegisteredModel>> search_registered_models(const Store& store,
                                                       const SearchRegisteredModels& query) {
    return store.snapshot([&](sqlite::Connection& connection) {
        return search_registered_models(connection, query);
    });
}

Result<Page<ModelVersion>> search_model_versions(const Store& store,
                                                 const SearchModelVersions& query) {
    return store.snapshot(
        [&](sqlite::Connection& connection) { return search_model_versions(connection, query); });
}

}  // namespace tune::tracker
