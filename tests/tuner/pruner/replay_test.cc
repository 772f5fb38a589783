// Studies small enough to count by hand.

#include "tuner/pruner/replay/replay.h"
#include "tuner/pruner/percentile_pruner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tune::tuner {
namespace {

/// Reports `values` at steps 0, 1, ..., one a second from `start_s`, and ends with the last.
RecordedTrial trial(std::uint64_t number, std::int64_t start_s, std::vector<double> values) {
    RecordedTrial made{
        .number = number, .value = values.empty() ? 0 : values.back(), .start_ms = start_s * 1000};
    for (std::size_t i = 0; i < values.size(); ++i)
        made.reports.push_back(
            {.step = static_cast<std::int64_t>(i),
             .value = values[i],
             .time_ms = made.start_ms + static_cast<std::int64_t>(i + 1) * 1000});
    made.end_ms = made.start_ms + static_cast<std::int64_t>(values.size()) * 1000;
    return made;
}

PrunerConfig median() {
    PrunerConfig config = pruner_named("median");
    config.edit<PercentileOptions>().startup = 1;
    return config;
}

TEST(PrunerReplay, CountsWhatTheMedianSaves) {
    // One after another. #0 sets the measure; #1 is worse from its first step: 3 of 4 reports and
    // seconds are saved; #2 is better throughout; #3 is better only at the end: it is lost.
    const std::vector<RecordedTrial> trials = {
        trial(0, 0, {4, 3, 2, 1}), trial(1, 10, {9, 9, 9, 9}), trial(2, 20, {2, 1, 1, 0.5}),
        trial(3, 30, {8, 8, 8, 0.1})};
    const PrunerReplay found = replay_pruner(median(), Goal::kMinimize, "s", trials);
    EXPECT_EQ(found.trials, 4u);
    EXPECT_EQ(found.pruned, 2u);
    EXPECT_EQ(found.reports, 16u);
    EXPECT_EQ(found.reports_saved, 6u);
    EXPECT_EQ(found.time_ms, 16'000);
    EXPECT_EQ(found.time_saved_ms, 6'000);
    EXPECT_EQ(found.best, 2u);
    EXPECT_EQ(found.best_value, 0.5);
    EXPECT_EQ(found.best_rank, 2u);
}

TEST(PrunerReplay, FollowsTheClockNotTheNumbers) {
    // #1 ends before #0 reports: #0 is measured by it.
    const std::vector<RecordedTrial> trials = {trial(0, 10, {9, 9}), trial(1, 0, {1, 1})};
    const PrunerReplay found = replay_pruner(median(), Goal::kMinimize, "s", trials);
    EXPECT_EQ(found.pruned, 1u);
    EXPECT_EQ(found.reports_saved, 1u);
    EXPECT_EQ(found.best, 1u);
    EXPECT_EQ(found.best_rank, 1u);
}

TEST(PrunerReplay, MaximizingTurnsRound) {
    const std::vector<RecordedTrial> trials = {trial(0, 0, {1, 1}), trial(1, 10, {9, 9})};
    EXPECT_EQ(replay_pruner(median(), Goal::kMaximize, "s", trials).pruned, 0u);
    EXPECT_EQ(replay_pruner(median(), Goal::kMaximize, "s", trials).best, 1u);
    EXPECT_EQ(replay_pruner(median(), Goal::kMinimize, "s", trials).pruned, 1u);
}

TEST(PrunerReplay, NoneSavesAndLosesNothing) {
    const std::vector<RecordedTrial> trials = {trial(0, 0, {1, 2}), trial(1, 0, {9, 9})};
    const PrunerReplay found = replay_pruner({}, Goal::kMinimize, "s", trials);
    EXPECT_EQ(found.pruned, 0u);
    EXPECT_EQ(found.reports_saved, 0u);
    EXPECT_EQ(found.time_saved_ms, 0);
    EXPECT_EQ(found.best_rank, 1u);
}

TEST(PrunerReplay, EndsAndRowsOfEveryKind) {
    RecordedTrial failed = trial(0, 0, {1, 1});
    failed.end = Pruner::End::kGone;  // measures nobody
    RecordedTrial twice = trial(1, 10, {5, 5});
    twice.reports.push_back({.step = 0, .value = 0, .time_ms = 11'500});  // its first report counts
    RecordedTrial silent = trial(2, 20, {});
    RecordedTrial nan = trial(3, 30, {std::numeric_limits<double>::quiet_NaN()});
    RecordedTrial pruned = trial(4, 40, {4});
    pruned.end = Pruner::End::kPruned;
    const std::vector<RecordedTrial> trials = {failed, twice, silent, nan, pruned};
    const PrunerReplay found = replay_pruner(median(), Goal::kMinimize, "s", trials);
    EXPECT_EQ(found.reports, 6u);
    EXPECT_EQ(found.pruned, 1u);  // NaN is worse than everything
    EXPECT_EQ(found.reports_saved, 0u);
    EXPECT_EQ(found.best, 2u);
    EXPECT_EQ(replay_pruner(median(), Goal::kMinimize, "s", {}).best, std::nullopt);
}

}  // namespace
}  // namespace tune::tuner
