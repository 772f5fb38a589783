#include "tuner/study/trial/objective.h"

#include <gtest/gtest.h>

#include <cmath>

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

}  // namespace
}  // namespace tune::tuner
