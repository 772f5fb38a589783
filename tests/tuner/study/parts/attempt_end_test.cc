#include "tuner/study/trial/attempt_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/tuner/study/parts/table.h"

namespace tune::tuner {
namespace {

using ::testing::HasSubstr;

struct EndTable : Table {
    EndTable() : Table(R"("retry": {"max": 1, "on": ["failed"]})") {}

    AttemptEnd ends(Outcome outcome, bool timed_out = false) {
        return attempt_end(
            trial,
            {.request_id = "f", .outcome = outcome, .timed_out = timed_out, .reason = "so it was"},
            config(), 7);
    }

    Trial& trial = start();
};

TEST(AttemptEnd, AResultCompletesTheTrial) {
    EndTable table;
    table.trial.progress->metrics.add("loss", {.step = 0, .timestamp_ms = 0, .value = 0.5});
    const AttemptEnd end = table.ends(Outcome::kDone);
    ASSERT_TRUE(end.end);
    EXPECT_EQ(end.end->state, TrialState::kComplete);
    EXPECT_EQ(end.end->value, 0.5);
    EXPECT_EQ(end.end->now_ms, 7);
    EXPECT_EQ(end.end->reason, "");
    EXPECT_EQ(table.trial.finish_request, "f");
    EXPECT_EQ(table.trial.state, TrialState::kRunning) << "who calls it moves the trial";
}

TEST(AttemptEnd, WithoutTheMetricItFailsAndSaysHowToReport) {
    EndTable table;
    const AttemptEnd end = table.ends(Outcome::kDone);
    ASSERT_TRUE(end.end);
    EXPECT_EQ(end.end->state, TrialState::kFailed);
    EXPECT_THAT(end.end->reason, HasSubstr("so it was; metric 'loss' never arrived"));
}

TEST(AttemptEnd, OnlyNamedFailuresAreTriedAgainAndOnlySoOften) {
    EndTable table;
    const AttemptEnd first = table.ends(Outcome::kFailed);
    EXPECT_FALSE(first.end);
    EXPECT_EQ(first.reason, "so it was");
    EXPECT_EQ(table.trial.failed_attempt, 1);
    EXPECT_TRUE(table.ends(Outcome::kFailed).end) << "max is 1";
    EndTable timed_out;
    EXPECT_TRUE(timed_out.ends(Outcome::kFailed, true).end);
    EndTable bad;
    EXPECT_TRUE(bad.ends(Outcome::kBadConfig).end);
    EXPECT_EQ(bad.trial.user_failures, 0);
}

TEST(AttemptEnd, APreemptedOneWaitsWithoutCounting) {
    EndTable table;
    for (int i = 0; i < 3 * kLostAttemptsMax; ++i)
        EXPECT_FALSE(table.ends(Outcome::kPreempted).end);
    EXPECT_EQ(table.trial.user_failures + table.trial.lost_attempts, 0);
}

TEST(AttemptEnd, ATrialThatKeepsLosingItsMachineIsGivenUp) {
    EndTable table;
    for (int i = 1; i < kLostAttemptsMax; ++i) ASSERT_FALSE(table.ends(Outcome::kLost).end) << i;
    const AttemptEnd last = lost_attempt_end(table.trial, "silent", 7);
    ASSERT_TRUE(last.end);
    EXPECT_EQ(last.end->reason, "given up after 10 lost attempts; the last: silent");
}

}  // namespace
}  // namespace tune::tuner
