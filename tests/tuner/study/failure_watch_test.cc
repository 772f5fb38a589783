#include "tuner/study/budget/failure_watch.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tune::tuner {
namespace {

TEST(FailureKind, LeavesOutValues) {
    EXPECT_EQ(failure_kind("exit code 1: bad lr 1e-05 of x3 in run 0af3"),
              failure_kind("exit code 1: bad lr 0.25 of x17 in run ffe0b1"));
    EXPECT_EQ(failure_kind("exit code 1: KeyError: 'adam'"),
              failure_kind("exit code 1: KeyError: 'sgd'"))
        << "the value of a categorical";
    EXPECT_EQ(failure_kind("exit code 1: torch.OutOfMemoryError: tried a"),
              "exit code #: torch.OutOfMemoryError");
    EXPECT_EQ(failure_kind("ValueError"), "ValueError");
    EXPECT_NE(failure_kind("exit code 1: KeyError: 'lr'"),
              failure_kind("exit code 1: ValueError: 'lr'"));
    EXPECT_NE(failure_kind("exit code 1: train.py: error: no --lr"),
              failure_kind("exit code 1: train.py: error: no --depth"))
        << "no exception's name";
    EXPECT_EQ(failure_kind("no digits, no change"), "no digits, no change");
    EXPECT_EQ(failure_kind(""), "");
}

TEST(FailureWatch, StopsWhenSoManyInARowFailAlike) {
    FailureWatch watch(3);
    watch.trial_ended(TrialState::kFailed, "exit code 1: no module a");
    watch.trial_ended(TrialState::kFailed, "exit code 1: no module a");
    EXPECT_FALSE(watch.should_stop());
    watch.trial_ended(TrialState::kCancelled, "");
    watch.trial_ended(TrialState::kFailed, "exit code 1: no module a");
    EXPECT_EQ(watch.should_stop(), "3 trials in a row failed alike before any succeeded");
}

TEST(FailureWatch, AnotherFailureBeginsAnew) {
    FailureWatch watch(2);
    for (const char* reason : {"a", "b", "a", "b"}) watch.trial_ended(TrialState::kFailed, reason);
    EXPECT_FALSE(watch.should_stop());
    watch.trial_ended(TrialState::kFailed, "b");
    EXPECT_TRUE(watch.should_stop());
}

TEST(FailureWatch, OneSuccessEndsTheWatch) {
    for (const TrialState success : {TrialState::kComplete, TrialState::kPruned}) {
        FailureWatch watch(1);
        watch.trial_ended(success, "");
        watch.trial_ended(TrialState::kFailed, "a");
        EXPECT_FALSE(watch.should_stop());
    }
}

TEST(FailureWatch, NobodyKnowsWhetherFailuresWithoutAReasonAreAlike) {
    FailureWatch watch(2);
    for (int i = 0; i < 5; ++i) watch.trial_ended(TrialState::kFailed, "");
    EXPECT_FALSE(watch.should_stop());
}

TEST(FailureWatch, ZeroNeverStops) {
    FailureWatch watch(0);
    for (int i = 0; i < 5; ++i) watch.trial_ended(TrialState::kFailed, "a");
    EXPECT_FALSE(watch.should_stop());
}

TEST(ExcusedEnds, HoldFailuresAndWhatTheStopCancelled) {
    const ExcusedEnds ends{.stopped_at = 10, .until = 20};
    const auto trial = [](TrialState state, std::int64_t ended_at) {
        Trial made;
        made.state = state;
        made.ended_at = ended_at;
        return made;
    };
    EXPECT_TRUE(ends.holds(trial(TrialState::kFailed, 3)));
    EXPECT_TRUE(ends.holds(trial(TrialState::kFailed, 20)));
    EXPECT_FALSE(ends.holds(trial(TrialState::kFailed, 21)));
    EXPECT_FALSE(ends.holds(trial(TrialState::kCancelled, 9))) << "cancelled by the user";
    EXPECT_TRUE(ends.holds(trial(TrialState::kCancelled, 11)));
    EXPECT_FALSE(ends.holds(trial(TrialState::kComplete, 11)));
    const auto again = excused_from_json(to_json(std::vector<ExcusedEnds>{ends}));
    ASSERT_EQ(again.size(), 1u);
    EXPECT_EQ(again[0].stopped_at, 10);
    EXPECT_EQ(again[0].until, 20);
}

}  // namespace
}  // namespace tune::tuner
