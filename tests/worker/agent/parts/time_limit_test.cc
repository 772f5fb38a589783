#include "worker/agent/time_limit.h"

#include <gtest/gtest.h>

namespace tune::worker {
namespace {

TEST(TrialDurations, NineOfTenEndWithinThem) {
    TrialDurations durations;
    EXPECT_EQ(durations.expected_ms(), 0);
    durations.add("s", 50);
    EXPECT_EQ(durations.expected_ms(), 50);
    for (int i = 1; i <= 9; ++i) durations.add("s", i);
    EXPECT_EQ(durations.expected_ms(), 9);
    durations.add("t", 30);
    EXPECT_EQ(durations.expected_ms(), 30) << "the study whose trials take longest";
}

TEST(TrialDurations, OnlyTheLastOnesCount) {
    TrialDurations durations;
    for (int i = 0; i < 50; ++i) durations.add("s", 1000);
    for (int i = 0; i < 100; ++i) durations.add("s", 10);
    EXPECT_EQ(durations.expected_ms(), 10);
}

TEST(TimeLimit, LeavesTimeForGraceAndDelivery) {
    const TimeLimit limit{.begin_ms = 1'000, .limit_ms = 3'600'000};
    EXPECT_EQ(limit.stop_ms(30'000), 1'000 + 3'600'000 - 10'000 - 30'000);
    EXPECT_EQ(limit.last_lease_ms(600'000, 30'000), 1'000 + 3'600'000 - 10'000 - 600'000);
    EXPECT_EQ(limit.last_lease_ms(0, 30'000), limit.stop_ms(30'000)) << "nothing is known";
}

TEST(TimeLimit, AShortOneKeepsItsProportions) {
    const TimeLimit limit{.begin_ms = 0, .limit_ms = 20'000};
    EXPECT_EQ(limit.stop_ms(1'000), 17'000);
    EXPECT_EQ(limit.stop_ms(60'000), 0) << "never before the beginning";
    EXPECT_EQ(limit.last_lease_ms(60'000, 0), 0);
}

TEST(TimeLimit, NoneIsNever) {
    EXPECT_GT(TimeLimit{}.stop_ms(0), std::int64_t{1} << 60);
    EXPECT_GT(TimeLimit{}.last_lease_ms(1, 1), std::int64_t{1} << 60);
}

}  // namespace
}  // namespace tune::worker
