#include "tracker/search/order_by_ties.h"

#include <algorithm>

namespace tune::tracker::search {
namespace {

/// MLflow's default order of experiments; with keys, it breaks their ties by the newest id.
constexpr std::array kExperimentOrder = {TieBreaker{"creation_time", false},
                                         TieBreaker{"experiment_id", true}};
constexpr std::array kExperimentTies = {TieBreaker{"experiment_id", false}};
constexpr std::array kLoggedModelTies = {TieBreaker{"creation_time", false},
                                         TieBreaker{"model_id", true}};
constexpr std::array kRegisteredModelTies = {TieBreaker{"name", true}};
constexpr std::array kModelVersionTies = {TieBreaker{"name", true},
                                          TieBreaker{"version_number", false}};

std::string number(ValueRank rank) {
    return std::to_string(static_cast<int>(rank));
}

}  // namespace

std::string sql_rank(const std::string& value) {
    return "(CASE typeof(" + value + ") WHEN 'null' THEN " + number(ValueRank::kMissing) +
           " WHEN 'text' THEN " + number(ValueRank::kNan) + " ELSE " + number(ValueRank::kNumber) +
           " END)";
}

std::span<const TieBreaker> tie_breakers(Subject subject, bool has_keys) {
    switch (subject) {
        case Subject::kRuns: return kRunTies;
        case Subject::kExperiments:
            if (has_keys) return kExperimentTies;
            return kExperimentOrder;
        case Subject::kLoggedModels: return kLoggedModelTies;
        case Subject::kRegisteredModels: return kRegisteredModelTies;
        case Subject::kModelVersions: return kModelVersionTies;
    }
    return kRunTies;
}

void append_tie_breakers(Subject subject, const std::function<bool(std::string_view)>& is_key,
                         const std::function<std::string(std::string_view)>& attribute,
                         std::vector<SortColumn>& columns) {
    for (const TieBreaker& tie : tie_breakers(subject, !columns.empty())) {
        if (is_key(tie.attribute)) continue;
        SortColumn column;
        column.value = attribute(tie.attribute);
        column.is_ascending = tie.is_ascending;
        column.is_nullable = false;
        columns.push_back(std::move(column));
    }
}

void append_tie_breakers(Subject subject, std::span<const OrderKey> keys,
                         const std::function<std::string(std::string_view)>& attribute,
                         std::vector<SortColumn>& columns) {
    const auto is_key = [keys](std::string_view name) {
        return std::any_of(keys.begin(), keys.end(), [name](const OrderKey& key) {
            return key.entity == Entity::kAttribute && key.key == name;
        });
    };
    append_tie_breakers(subject, is_key, attribute, columns);
}

}  // namespace tune::tracker::search
