#include "tuner/pruner/pruner.h"
#include "tuner/pruner/asha_pruner.h"
#include "tuner/pruner/percentile_pruner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tuner/pruner/reports.h"

namespace tune::tuner::pruner_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

PrunerConfig median(int startup = 1) {
    PrunerConfig config = pruner_named("median");
    config.edit<PercentileOptions>().startup = startup;
    return config;
}

PrunerConfig asha(std::int64_t min, int eta) {
    PrunerConfig config = pruner_named("asha");
    config.edit<AshaOptions>().min = min;
    config.edit<AshaOptions>().eta = eta;
    return config;
}

/// A trial that reports `values` at steps 0, 1, ... and completes.
void complete(Pruner& pruner, std::uint64_t number, const std::vector<double>& values) {
    for (std::size_t step = 0; step < values.size(); ++step)
        (void)pruner.report(number, static_cast<std::int64_t>(step), values[step]);
    pruner.finish(number, Pruner::End::kComplete);
}

bool prunes(Pruner& pruner, std::uint64_t number, std::int64_t step, double value) {
    return pruner.report(number, step, value) == Verdict::kPrune;
}

TEST(None, KeepsEverything) {
    const auto pruner = make_pruner(PrunerConfig{}, Goal::kMinimize);
    complete(*pruner, 0, {1, 1});
    EXPECT_FALSE(prunes(*pruner, 1, 0, kNan));
    EXPECT_FALSE(prunes(*pruner, 1, 1, kInf));
}

TEST(Median, StopsWhatIsWorseThanTheMedian) {
    const auto pruner = make_pruner(median(), Goal::kMinimize);
    complete(*pruner, 0, {1, 1});
    complete(*pruner, 1, {2, 2});
    complete(*pruner, 2, {3, 3});
    EXPECT_FALSE(prunes(*pruner, 3, 0, 1.9));
    EXPECT_FALSE(prunes(*pruner, 4, 0, 2));  // equal survives
    EXPECT_TRUE(prunes(*pruner, 5, 0, 2.1));
}

TEST(Median, MaximizingTurnsRound) {
    const auto pruner = make_pruner(median(), Goal::kMaximize);
    complete(*pruner, 0, {1});
    complete(*pruner, 1, {2});
    complete(*pruner, 2, {3});
    EXPECT_TRUE(prunes(*pruner, 3, 0, 1.9));
    EXPECT_FALSE(prunes(*pruner, 4, 0, 2.1));
}

TEST(Median, TheBestValueSoFarCounts) {
    const auto pruner = make_pruner(median(), Goal::kMinimize);
    complete(*pruner, 0, {1, 1});
    EXPECT_FALSE(prunes(*pruner, 1, 0, 0.5));
    EXPECT_FALSE(prunes(*pruner, 1, 1, 100));
}

TEST(Median, WaitsForEnoughCompleteTrials) {
    const auto pruner = make_pruner(median(3), Goal::kMinimize);
    complete(*pruner, 0, {1});
    complete(*pruner, 1, {1});
    EXPECT_FALSE(prunes(*pruner, 9, 0, 5));
    pruner->finish(9, Pruner::End::kPruned);  // does not count
    EXPECT_FALSE(prunes(*pruner, 8, 0, 5));
    complete(*pruner, 2, {1});
    EXPECT_TRUE(prunes(*pruner, 7, 0, 5));
}

TEST(Median, FailedTrialsMeasureNobody) {
    const auto pruner = make_pruner(median(), Goal::kMinimize);
    complete(*pruner, 0, {10});
    (void)pruner->report(1, 0, 0);
    pruner->finish(1, Pruner::End::kGone);
    EXPECT_FALSE(prunes(*pruner, 2, 0, 9));
}

TEST(Median, NothingIsKnownAtOtherSteps) {
    const auto pruner = make_pruner(median(), Goal::kMinimize);
    complete(*pruner, 0, {1});
    EXPECT_FALSE(prunes(*pruner, 1, 7, 100));
}

TEST(Median, NanRules) {
    const auto pruner = make_pruner(median(), Goal::kMinimize);
    complete(*pruner, 0, {kNan, 1});
    EXPECT_TRUE(prunes(*pruner, 1, 0, kNan));  // nothing but NaN so far
    EXPECT_FALSE(prunes(*pruner, 2, 0, 1e9));  // the others have no number here
    EXPECT_TRUE(prunes(*pruner, 2, 1, 5));
    EXPECT_FALSE(prunes(*pruner, 3, 0, 0.5));
    EXPECT_FALSE(prunes(*pruner, 3, 1, kNan));  // its best is still a number
    EXPECT_TRUE(prunes(*pruner, 4, 1, kInf));
}

TEST(Median, TheFirstReportOfAStepCounts) {
    const auto pruner = make_pruner(median(), Goal::kMinimize);
    complete(*pruner, 0, {1});
    EXPECT_TRUE(prunes(*pruner, 1, 0, 5));
    EXPECT_TRUE(prunes(*pruner, 1, 0, 0));
}

TEST(Median, ReportsAfterTheEndAreIgnored) {
    const auto pruner = make_pruner(median(), Goal::kMinimize);
    complete(*pruner, 0, {1});
    EXPECT_FALSE(prunes(*pruner, 0, 5, 100));
    pruner->finish(0, Pruner::End::kComplete);
    (void)pruner->report(1, 0, 3);
    pruner->finish(1, Pruner::End::kComplete);
    EXPECT_FALSE(prunes(*pruner, 2, 0, 2));  // the median of 1 and 3, each counted once
    EXPECT_TRUE(prunes(*pruner, 3, 0, 2.01));
}

TEST(Percentile, KeepsTheGivenShare) {
    const PrunerConfig config(percentile_pruner(),
                              PercentileOptions{.percentile = 25, .startup = 1});
    for (const Goal goal : {Goal::kMinimize, Goal::kMaximize}) {
        const double sign = goal == Goal::kMinimize ? 1 : -1;
        const auto pruner = make_pruner(config, goal);
        for (std::uint64_t i = 0; i < 5; ++i) complete(*pruner, i, {sign * static_cast<double>(i)});
        EXPECT_FALSE(prunes(*pruner, 7, 0, sign * 1.0));
        EXPECT_TRUE(prunes(*pruner, 8, 0, sign * 1.1));
    }
}

TEST(Asha, PromotesTheBestOfEta) {
    const auto pruner = make_pruner(asha(1, 2), Goal::kMinimize);
    EXPECT_FALSE(prunes(*pruner, 0, 0, 9));  // below the first rung
    EXPECT_FALSE(prunes(*pruner, 0, 1, 5));  // the first is the best so far
    EXPECT_TRUE(prunes(*pruner, 1, 1, 6));
    EXPECT_FALSE(prunes(*pruner, 2, 1, 4));
    EXPECT_FALSE(prunes(*pruner, 3, 1, 4.5));  // the best 2 of 4
    EXPECT_FALSE(prunes(*pruner, 4, 1, 4.5));  // ties go on
}

TEST(Asha, OneReportMayPassSeveralRungs) {
    const auto pruner = make_pruner(asha(1, 2), Goal::kMaximize);
    EXPECT_FALSE(prunes(*pruner, 0, 8, 1));   // rungs 1, 2, 4, 8
    EXPECT_TRUE(prunes(*pruner, 1, 8, 0.5));  // stopped at the first
    EXPECT_FALSE(prunes(*pruner, 2, 8, 2));
}

TEST(Asha, NanAtARungIsPruned) {
    const auto pruner = make_pruner(asha(2, 2), Goal::kMinimize);
    EXPECT_FALSE(prunes(*pruner, 0, 1, kNan));
    EXPECT_TRUE(prunes(*pruner, 0, 2, kNan));
    EXPECT_FALSE(prunes(*pruner, 1, 2, kInf));  // the first value at the rung
}

TEST(Asha, AutoWaitsForACompleteTrial) {
    const auto pruner = make_pruner(asha(0, 2), Goal::kMinimize);
    (void)pruner->report(0, 399, 1);
    (void)pruner->report(1, 399, 2);
    EXPECT_FALSE(prunes(*pruner, 2, 399, 3));
    pruner->finish(0, Pruner::End::kComplete);  // longest 399: rungs at 3, 6, 12, ...
    EXPECT_FALSE(prunes(*pruner, 3, 2, 9));
    EXPECT_FALSE(prunes(*pruner, 3, 3, 9));
    EXPECT_TRUE(prunes(*pruner, 4, 3, 10));
}

TEST(Asha, NoRungAtOrBeyondMax) {
    PrunerConfig config = asha(1, 2);
    config.edit<AshaOptions>().max = 4;
    const auto pruner = make_pruner(config, Goal::kMinimize);
    for (const double value : {1.0, 0.9}) {
        const std::uint64_t number = value == 1.0 ? 0 : 1;
        EXPECT_FALSE(prunes(*pruner, number, 1, value));
        EXPECT_FALSE(prunes(*pruner, number, 2, value));
    }
    EXPECT_FALSE(prunes(*pruner, 0, 4, 1e9));
    EXPECT_FALSE(prunes(*pruner, 1, 4, 2e9));
}

TEST(Asha, HugeStepsDoNotOverflow) {
    const auto pruner = make_pruner(asha(1, 2), Goal::kMinimize);
    EXPECT_FALSE(prunes(*pruner, 0, std::numeric_limits<std::int64_t>::max() - 1, 1));
    EXPECT_TRUE(prunes(*pruner, 1, std::numeric_limits<std::int64_t>::max() - 1, 2));
}

TEST(Pruner, ReportsOutOfOrderAndNegativeStepsAreHarmless) {
    for (const PrunerConfig& config : {median(), asha(1, 2)}) {
        const auto pruner = make_pruner(config, Goal::kMinimize);
        complete(*pruner, 0, {1, 1, 1});
        for (const std::int64_t step : {5, -3, 2, 1, 2, 0, -3, 7}) (void)pruner->report(1, step, 0);
        pruner->finish(1, Pruner::End::kComplete);
        pruner->finish(77, Pruner::End::kGone);
    }
}

TEST(SortedValues, PercentileIsNumpys) {
    SortedValues values;
    EXPECT_TRUE(std::isnan(values.percentile(50)));
    for (const double v : {4.0, 1.0, 2.0, 10.0}) values.insert(v);
    EXPECT_DOUBLE_EQ(values.percentile(0), 1);
    EXPECT_DOUBLE_EQ(values.percentile(50), 3);
    EXPECT_DOUBLE_EQ(values.percentile(30), 1.9);
    EXPECT_DOUBLE_EQ(values.percentile(100), 10);
}

}  // namespace
}  // namespace tune::tuner::pruner_test
