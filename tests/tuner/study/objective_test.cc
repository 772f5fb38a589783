#include "tuner/study/trial/objective.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace tune::tuner {
namespace {

MetricConfig metric(Aggregation aggregation, Goal goal = Goal::kMinimize, int count = 1) {
    return {
        .name = "loss", .goal = goal, .step = {}, .aggregation = aggregation, .take_count = count};
}

TEST(Objective, HasNoValueBeforeTheFirstRow) {
    const Objective objective(metric(Aggregation::kBest));
    EXPECT_FALSE(objective.value().has_value());
    EXPECT_FALSE(objective.last().has_value());
}

TEST(Objective, TakesTheBestOfTheGoal) {
    Objective low(metric(Aggregation::kBest));
    Objective high(metric(Aggregation::kBest, Goal::kMaximize));
    for (const double value : {3.0, 1.0, 2.0}) {
        low.add({.step = 0, .timestamp_ms = 0, .value = value});
        high.add({.step = 0, .timestamp_ms = 0, .value = value});
    }
    EXPECT_EQ(low.value(), 1.0);
    EXPECT_EQ(high.value(), 3.0);
}

TEST(Objective, LastIsByStepThenTimestampThenArrival) {
    Objective objective(metric(Aggregation::kLast));
    objective.add({.step = 2, .timestamp_ms = 5, .value = 20});
    objective.add({.step = 1, .timestamp_ms = 9, .value = 10});
    EXPECT_EQ(objective.value(), 20);
    objective.add({.step = 2, .timestamp_ms = 4, .value = 21});
    EXPECT_EQ(objective.value(), 20);
    objective.add({.step = 2, .timestamp_ms = 5, .value = 22});
    EXPECT_EQ(objective.value(), 22);
    EXPECT_EQ(objective.last()->step, 2);
}

TEST(Objective, MeanOfTheLastRowsWhateverTheirOrder) {
    Objective objective(metric(Aggregation::kMeanLast, Goal::kMinimize, 3));
    objective.add({.step = 1, .timestamp_ms = 0, .value = 100});
    EXPECT_EQ(objective.value(), 100);
    for (const std::int64_t step : {5, 3, 4, 2})
        objective.add({.step = step, .timestamp_ms = 0, .value = static_cast<double>(step)});
    EXPECT_EQ(objective.value(), 4);
}

TEST(Objective, BestPassesOverNanUnlessNothingElseCame) {
    Objective objective(metric(Aggregation::kBest));
    objective.add({.step = 0, .timestamp_ms = 0, .value = std::nan("")});
    EXPECT_TRUE(std::isnan(*objective.value()));
    objective.add({.step = 1, .timestamp_ms = 0, .value = 7});
    objective.add({.step = 2, .timestamp_ms = 0, .value = std::nan("")});
    EXPECT_EQ(objective.value(), 7);
    Objective last(metric(Aggregation::kLast));
    last.add({.step = 0, .timestamp_ms = 0, .value = 7});
    last.add({.step = 1, .timestamp_ms = 0, .value = std::nan("")});
    EXPECT_TRUE(std::isnan(*last.value()));
}

TEST(Objective, ForgetsRowsFromAStepOn) {
    Objective objective(metric(Aggregation::kBest));
    EXPECT_EQ(objective.forget_from(0), Objective::Forgotten::kNothing);
    for (const auto& [step, value] : {std::pair{1, 0.5}, {2, 0.001}, {3, 0.7}})
        objective.add({.step = step, .timestamp_ms = 0, .value = value});
    EXPECT_EQ(objective.forget_from(4), Objective::Forgotten::kNothing);
    EXPECT_EQ(objective.forget_from(3), Objective::Forgotten::kSome);
    EXPECT_EQ(objective.value(), 0.001);
    EXPECT_EQ(objective.last()->step, 2);
    EXPECT_EQ(objective.forget_from(2), Objective::Forgotten::kSome);
    EXPECT_EQ(objective.value(), 0.5);
    EXPECT_EQ(objective.forget_from(1), Objective::Forgotten::kAll);
    EXPECT_FALSE(objective.value().has_value());
}

/// Of histories many times longer than what is kept, gone back to anywhere.
TEST(Objective, GoingBackLeavesWhatWasMeasuredBefore) {
    std::mt19937_64 random(7);
    for (int round = 0; round < 200; ++round) {
        const Goal goal = round % 2 == 0 ? Goal::kMinimize : Goal::kMaximize;
        Objective best(metric(Aggregation::kBest, goal));
        Objective mean(metric(Aggregation::kMeanLast, goal, 5));
        std::vector<double> values;
        for (int leg = 0; leg < 4; ++leg) {
            const std::size_t from = values.empty() ? 0 : random() % values.size();
            values.resize(from);
            for (Objective* one : {&best, &mean}) one->forget_from(static_cast<std::int64_t>(from));
            const std::size_t end = from + 6 + random() % 1000;
            for (std::size_t i = from; i < end; ++i) {
                values.push_back(std::uniform_real_distribution<>(0, 1)(random));
                for (Objective* one : {&best, &mean})
                    one->add({.step = static_cast<std::int64_t>(i),
                              .timestamp_ms = 0,
                              .value = values.back()});
            }
            const auto [low, high] = std::minmax_element(values.begin(), values.end());
            EXPECT_EQ(best.value(), goal == Goal::kMinimize ? *low : *high);
            EXPECT_NEAR(*mean.value(), std::accumulate(values.end() - 5, values.end(), 0.0) / 5,
                        1e-12);
        }
    }
}

}  // namespace
}  // namespace tune::tuner
