// Trials in the hands of REST clients: leases that are renewed and lost, attempts that are named,
// and what a client says of a trial's cost.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/tuner/study/world.h"

namespace tune::tuner {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

Result<std::optional<Action>> renew(World& world, std::uint64_t number, int attempt) {
    Answer<std::optional<Action>> answer;
    world.studies().clients().renew({"s", number, attempt}, answer.done());
    return answer.get();
}

Result<std::optional<Action>> report(World& world, std::uint64_t number, const std::string& metric,
                                     double value) {
    Answer<std::optional<Action>> answer;
    world.studies().clients().report(
        {.trial = {"s", number, 1}, .step = 1, .value = value, .metric = metric}, answer.done());
    return answer.get();
}

TEST(ClientLeases, ATellIsARepeatOnlyForTheAttemptThatItEnded) {
    World world;
    ASSERT_TRUE(world.create(R"("retry": {"max": 3, "on": ["failed"]})").has_value());
    const TellRequest failed{
        .trial = {"s", 0, 1}, .request_id = "same", .state = TrialState::kFailed};
    ASSERT_TRUE(world.ask().has_value());
    ASSERT_TRUE(world.tell(failed).has_value());
    EXPECT_TRUE(world.tell(failed).has_value()) << "its answer was lost";
    ASSERT_EQ(world.ask()->at(0).attempt, 2);
    EXPECT_TRUE(world.tell(failed).has_value()) << "and was late";
    EXPECT_EQ(world.trial(0).state, TrialState::kRunning);
    // Without a number it may be either.
    const auto unclear =
        world.tell({.trial = {"s", 0, 0}, .request_id = "same", .state = TrialState::kFailed});
    ASSERT_FALSE(unclear.has_value());
    EXPECT_EQ(unclear.error().code, Code::kResourceConflict);
    EXPECT_EQ(unclear.error().message,
              "request_id 'same' has ended attempt 1 of trial 0 of study 's'; to end attempt 2, "
              "which is running, name it in 'attempt' or take another request_id");
    ASSERT_TRUE(world.tell({.trial = {"s", 0, 2}, .request_id = "same", .value = 0.5}).has_value());
    EXPECT_EQ(world.trial(0).state, TrialState::kComplete);
    EXPECT_EQ(world.trial(0).value, 0.5);
}

TEST(ClientLeases, ARenewalKeepsTheAttemptAndSilenceLosesIt) {
    World world;
    ASSERT_TRUE(world.create().has_value());
    ASSERT_TRUE(world.ask(1, "", 10'000).has_value());
    for (int i = 0; i < 5; ++i) {
        world.advance_ms(9'000);
        ASSERT_EQ(*renew(world, 0, 1), std::nullopt) << "go on";
    }
    EXPECT_EQ(world.trial(0).attempt, 1);
    world.advance_ms(10'000);
    EXPECT_EQ(world.trial(0).state, TrialState::kQueued);
    EXPECT_EQ(world.trial(0).lost_attempts, 1);
    EXPECT_THAT(world.trial(0).reason, HasSubstr("its client on client has been silent for 10s"));
    EXPECT_EQ(renew(world, 0, 1).error().code, Code::kResourceConflict) << "it waits for an ask";
    EXPECT_EQ(world.ask(1, "", 10'000)->at(0).attempt, 2);
    const auto late = renew(world, 0, 1);
    ASSERT_FALSE(late.has_value());
    EXPECT_EQ(late.error().code, Code::kResourceConflict);
    EXPECT_THAT(late.error().message, HasSubstr("attempt 1 of trial 0 of study 's' is over"));
    world.advance_ms(9'999);
    EXPECT_EQ(world.trial(0).state, TrialState::kRunning) << "the late one renewed nothing";
    world.advance_ms(1);
    EXPECT_EQ(world.trial(0).state, TrialState::kQueued);
}

TEST(ClientLeases, ARenewalReportsWhatBecameOfTheTrial) {
    World world;
    ASSERT_TRUE(world.create(R"("pruner": {"type": "threshold", "upper": 5})").has_value());
    const auto asked = world.ask(2, "", 10'000);
    world.log(asked->at(0).run_id, "loss", 1, 9);
    world.store().wait_for_observers();  // the pruner sees it after the answer
    EXPECT_EQ(*renew(world, 0, 1), Action::kPrune);
    EXPECT_EQ(*renew(world, 1, 1), std::nullopt);
    ASSERT_TRUE(world.change(Studies::Change::kStop).has_value());
    EXPECT_EQ(*renew(world, 1, 1), Action::kStop);
    EXPECT_EQ(renew(world, 1, 2).error().code, Code::kResourceConflict);
    EXPECT_EQ(renew(world, 7, 1).error().code, Code::kResourceDoesNotExist);
}

TEST(ClientLeases, WithoutALeaseATrialIsTheClientsForEver) {
    World world;
    ASSERT_TRUE(world.create().has_value());
    ASSERT_TRUE(world.ask().has_value());
    world.advance_ms(std::int64_t{365} * 24 * 3600 * 1000);
    EXPECT_EQ(*renew(world, 0, 0), std::nullopt) << "nothing to renew, and no harm";
    world.reopen();
    world.advance_ms(World::kTtl_ms);
    EXPECT_TRUE(world.tell(0, 1).has_value());
    EXPECT_EQ(world.trial(0).attempt, 1);
}

TEST(ClientLeases, AServerThatComesBackGivesOneLeaseOfGrace) {
    World world;
    ASSERT_TRUE(world.create().has_value());
    ASSERT_TRUE(world.ask(1, "", 10'000).has_value());
    world.advance_ms(9'000);
    world.reopen();
    world.advance_ms(9'000);
    EXPECT_EQ(*renew(world, 0, 1), std::nullopt);
    world.advance_ms(9'000);
    EXPECT_EQ(world.trial(0).state, TrialState::kRunning);
    world.advance_ms(1'000);
    EXPECT_EQ(world.trial(0).state, TrialState::kQueued);
}

TEST(ClientLeases, ARepeatedAskBeginsTheLeaseAnew) {
    World world;
    ASSERT_TRUE(world.create().has_value());
    ASSERT_TRUE(world.ask(1, "r", 10'000).has_value());
    world.advance_ms(9'000);
    EXPECT_EQ(world.ask(1, "r", 10'000)->at(0).attempt, 1) << "its answer was lost on the way";
    world.advance_ms(9'000);
    EXPECT_EQ(world.trial(0).state, TrialState::kRunning);
}

TEST(ClientLeases, ATrialThatLosesEveryClientIsGivenUp) {
    World world;
    ASSERT_TRUE(world.create(R"("budget": {"trials": 1})").has_value());
    for (int i = 1; i <= kLostAttemptsMax; ++i) {
        ASSERT_EQ(world.ask(1, "", 10)->at(0).attempt, i);
        world.advance_ms(10);
    }
    EXPECT_EQ(world.trial(0).state, TrialState::kFailed);
    EXPECT_EQ(world.state(), StudyState::kCompleted) << "the study ends all the same";
}

TEST(Attempts, ATrialWithALeaseIsNamedWithItsAttempt) {
    World world;
    ASSERT_TRUE(world.create().has_value());
    ASSERT_TRUE(world.ask(1, "", 10'000).has_value());
    for (const Error& refused :
         {renew(world, 0, 0).error(), world.report(0, 0, 1, 1).error(), world.tell(0, 1).error()}) {
        EXPECT_EQ(refused.code, Code::kInvalidParameterValue);
        EXPECT_THAT(refused.message, HasSubstr("was asked with a lease"));
        EXPECT_THAT(refused.message, HasSubstr("name the 'attempt'"));
    }
    EXPECT_TRUE(world.tell({.trial = {"s", 0, 1}, .value = 1}).has_value());
}

TEST(Attempts, OneThatHasNotBegunIsNotCalledOver) {
    World world;
    ASSERT_TRUE(world.create().has_value());
    ASSERT_TRUE(world.ask().has_value());
    const auto early = world.tell({.trial = {"s", 0, 2}, .value = 1});
    EXPECT_EQ(early.error().code, Code::kResourceConflict);
    EXPECT_THAT(early.error().message, HasSubstr("attempt 2 of trial 0 of study 's' has not begun; "
                                                 "attempt 1 is running"));
}

TEST(Attempts, ALeaseOutsideItsRangeIsRefused) {
    World world;
    ASSERT_TRUE(world.create().has_value());
    for (const std::int64_t ttl_ms :
         {std::int64_t{-1}, kAskLeaseMax_ms + 1, std::numeric_limits<std::int64_t>::max()})
        EXPECT_THAT(world.ask(1, "", ttl_ms).error().message,
                    HasSubstr("lease_ttl_ms must be 0.."));
    EXPECT_THAT(*world.ask(1, "", kAskLeaseMax_ms), SizeIs(1));
}

StudyEnd end_of(World& world) {
    StudyEnd end = StudyEnd::kNone;
    EXPECT_TRUE(world.studies()
                    .read("s", [&](const Study& study) { end = study.status().end; })
                    .has_value());
    return end;
}

constexpr const char* kDollars = R"("budget": {"cost": {"metric": "dollars", "max": 6}})";

TEST(Costs, ReportedAndToldOnesEndTheStudy) {
    World world;
    ASSERT_TRUE(world.create(kDollars).has_value());
    ASSERT_THAT(*world.ask(2), SizeIs(2));
    ASSERT_TRUE(report(world, 0, "dollars", 2).has_value());
    ASSERT_TRUE(world.tell(0, 1).has_value());
    ASSERT_TRUE(report(world, 1, "dollars", 1).has_value());
    ASSERT_TRUE(world.tell({.trial = {"s", 1, 1}, .value = 1, .cost = 3}).has_value());
    const auto run = world.store().get_run(world.trial(1).run_id);
    EXPECT_THAT(run->metrics, ::testing::Contains(::testing::AllOf(
                                  ::testing::Field(&tracker::Metric::key, "dollars"),
                                  ::testing::Field(&tracker::Metric::value, 3))));
    EXPECT_EQ(end_of(world), StudyEnd::kCost) << "5 of 6 are paid, and a trial costs 2.5";
    EXPECT_THAT(*world.ask(), SizeIs(0));
    world.reopen();
    EXPECT_EQ(end_of(world), StudyEnd::kCost);
}

TEST(Costs, TheGreatestOfATrialCounts) {
    World world;
    ASSERT_TRUE(world.create(kDollars).has_value());
    ASSERT_TRUE(world.ask().has_value());
    ASSERT_TRUE(report(world, 0, "dollars", 4).has_value());
    ASSERT_TRUE(world.tell({.trial = {"s", 0, 1}, .value = 1, .cost = 1}).has_value());
    double paid = 0;
    ASSERT_TRUE(world.studies()
                    .read("s", [&](const Study& study) { paid = study.budget().paid(); })
                    .has_value());
    EXPECT_EQ(paid, 4);
}

TEST(Costs, AMetricWithABoundCanBeTheCostToo) {
    World world;
    ASSERT_TRUE(
        world.create(std::string(kDollars) + R"(, "constraints": [{"name": "dollars", "max": 4}])")
            .has_value());
    ASSERT_THAT(*world.ask(2), SizeIs(2));
    ASSERT_TRUE(report(world, 0, "dollars", 3).has_value());
    ASSERT_TRUE(world.tell(0, 1).has_value());
    ASSERT_TRUE(world.tell({.trial = {"s", 1, 1}, .value = 1, .constraints = {{"dollars", 3}}})
                    .has_value());
    EXPECT_EQ(end_of(world), StudyEnd::kCost);
}

TEST(Costs, AStoppedTrialHearsItAtItsNextWord) {
    World world;
    ASSERT_TRUE(world.create(kDollars).has_value());
    ASSERT_TRUE(world.ask(1, "", 10'000).has_value());
    EXPECT_EQ(*report(world, 0, "dollars", 6), Action::kStop);
    EXPECT_EQ(*renew(world, 0, 1), Action::kStop);
    EXPECT_EQ(end_of(world), StudyEnd::kCost);
}

TEST(Costs, WhatIsNoCostIsRefused) {
    World world;
    ASSERT_TRUE(world.create(kDollars).has_value());
    ASSERT_TRUE(world.ask().has_value());
    for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()})
        EXPECT_THAT(world.tell({.trial = {"s", 0, 1}, .value = 1, .cost = bad}).error().message,
                    HasSubstr("finite number of 0 or more"));
    EXPECT_THAT(report(world, 0, "euros", 1).error().message,
                HasSubstr("measures loss, dollars; 'euros' is none of them"));
    EXPECT_EQ(world.trial(0).state, TrialState::kRunning);
    World plain;
    ASSERT_TRUE(plain.create(R"("budget": {"cost": {"of": "seconds", "max": 100}})").has_value());
    ASSERT_TRUE(plain.ask().has_value());
    EXPECT_THAT(plain.tell({.trial = {"s", 0, 1}, .value = 1, .cost = 1}).error().message,
                HasSubstr("no budget of cost by a metric"));
    EXPECT_FALSE(report(plain, 0, "dollars", 1).has_value());
}

}  // namespace
}  // namespace tune::tuner
