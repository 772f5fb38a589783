#include "tracker/search/order_by_ties.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tune::tracker::search {
namespace {

std::string attribute(std::string_view name) {
    return "t." + std::string(name);
}

/// "t.name" or "t.name DESC" of each column.
std::vector<std::string> names(const std::vector<SortColumn>& columns) {
    std::vector<std::string> out;
    for (const SortColumn& column : columns)
        out.push_back(column.value + (column.is_ascending ? "" : " DESC"));
    return out;
}

std::vector<std::string> ties_of(Subject subject, const std::vector<OrderKey>& keys) {
    std::vector<SortColumn> columns;
    for (const OrderKey& key : keys)
        columns.push_back({attribute(key.key), false, key.is_ascending, false});
    append_tie_breakers(subject, keys, &attribute, columns);
    return names(columns);
}

OrderKey key_of(std::string name, Entity entity = Entity::kAttribute) {
    OrderKey key;
    key.key = std::move(name);
    key.entity = entity;
    return key;
}

using Names = std::vector<std::string>;

TEST(OrderByTies, EachSubjectHasItsOwn) {
    EXPECT_EQ(ties_of(Subject::kRuns, {}), (Names{"t.start_time DESC", "t.run_id"}));
    EXPECT_EQ(ties_of(Subject::kLoggedModels, {}), (Names{"t.creation_time DESC", "t.model_id"}));
    EXPECT_EQ(ties_of(Subject::kRegisteredModels, {}), (Names{"t.name"}));
    EXPECT_EQ(ties_of(Subject::kModelVersions, {}), (Names{"t.name", "t.version_number DESC"}));
}

TEST(OrderByTies, ExperimentsHaveADefaultOrderAndAnotherOneBehindKeys) {
    EXPECT_EQ(ties_of(Subject::kExperiments, {}),
              (Names{"t.creation_time DESC", "t.experiment_id"}));
    EXPECT_EQ(ties_of(Subject::kExperiments, {key_of("name")}),
              (Names{"t.name", "t.experiment_id DESC"}));
}

TEST(OrderByTies, AKeyOfTheQueryIsNotRepeated) {
    EXPECT_EQ(ties_of(Subject::kRuns, {key_of("start_time")}), (Names{"t.start_time", "t.run_id"}));
    EXPECT_EQ(ties_of(Subject::kModelVersions, {key_of("version_number")}),
              (Names{"t.version_number", "t.name"}));
}

TEST(OrderByTies, AMetricOfTheSameNameIsAnotherKey) {
    EXPECT_EQ(ties_of(Subject::kRuns, {key_of("start_time", Entity::kMetric)}),
              (Names{"t.start_time", "t.start_time DESC", "t.run_id"}));
}

TEST(OrderByTies, NumbersComeBeforeNanBeforeMissingInBothDirections) {
    for (const bool is_ascending : {true, false}) {
        EXPECT_LT(
            compare_ranked(ValueRank::kNumber, 9, ValueRank::kNan, std::nan(""), is_ascending), 0);
        EXPECT_LT(
            compare_ranked(ValueRank::kNan, std::nan(""), ValueRank::kMissing, 0, is_ascending), 0);
        EXPECT_EQ(compare_ranked(ValueRank::kNan, std::nan(""), ValueRank::kNan, 0, is_ascending),
                  0);
    }
    EXPECT_LT(compare_ranked(ValueRank::kNumber, 1, ValueRank::kNumber, 2, true), 0);
    EXPECT_GT(compare_ranked(ValueRank::kNumber, 1, ValueRank::kNumber, 2, false), 0);
}

}  // namespace
}  // namespace tune::tracker::search
