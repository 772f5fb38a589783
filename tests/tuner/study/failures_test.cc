// Studies whose first trials fail: they stop, and go on once the command was mended.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/tuner/study/world.h"

namespace tune::tuner {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kFive = R"("budget": {"trials": 5})";

struct Seen {
    StudyState state = StudyState::kRunning;
    StudyEnd end = StudyEnd::kNone;
    std::string note;
    std::size_t excused = 0;
    std::size_t trials = 0;
    std::int64_t started_ms = 0;
    double paid = 0;
};

Seen look(World& world) {
    Seen seen;
    EXPECT_TRUE(world.studies()
                    .read("s",
                          [&](const Study& study) {
                              seen = {study.state(),         study.status().end,
                                      study.status().note,   study.beginning().count(),
                                      study.trials().size(), study.budget().started_ms(),
                                      study.budget().paid()};
                          })
                    .has_value());
    return seen;
}

/// Asks one trial and fails it. Its params.
std::string fail_one(World& world, const std::string& reason = "exit code 1: no module") {
    const auto asked = world.ask();
    EXPECT_TRUE(asked.has_value() && asked->size() == 1);
    if (!asked || asked->empty()) return {};
    const AskedTrial& trial = asked->front();
    EXPECT_TRUE(
        world
            .tell({.trial = {"s", trial.number, 0}, .state = TrialState::kFailed, .reason = reason})
            .has_value());
    return trial.params_json;
}

/// Runs the study to its end with trials that succeed. Their params.
std::multiset<std::string> succeed(World& world) {
    std::multiset<std::string> params;
    while (true) {
        const auto asked = world.ask();
        EXPECT_TRUE(asked.has_value());
        if (!asked || asked->empty()) return params;
        params.insert(asked->front().params_json);
        EXPECT_TRUE(world.tell(asked->front().number, 0.5).has_value());
    }
}

/// The study is over, and creating it anew with the same `fields` does not begin it again.
void expect_over_for_good(World& world, const char* fields) {
    EXPECT_EQ(look(world).state, StudyState::kCompleted);
    ASSERT_TRUE(world.create(fields).has_value());
    EXPECT_EQ(look(world).state, StudyState::kCompleted);
    EXPECT_EQ(look(world).excused, 0u);
}

/// The journal leads to the same points.
void expect_nothing_differs(World& world) {
    Answer<ReplayReport> answer;
    world.studies().replay("s", answer.done());
    const Result<ReplayReport> report = answer.get();
    ASSERT_TRUE(report.has_value()) << report.error().text();
    EXPECT_GT(report->compared, 0u);
    EXPECT_EQ(report->differing, 0u);
}

TEST(Failures, TheSameCommandTriesTheFailedPointsAgainAndEndsTheBudget) {
    World world;
    ASSERT_TRUE(world.create(kFive).has_value());
    std::vector<std::string> failed;
    for (int i = 0; i < 3; ++i) failed.push_back(fail_one(world));
    EXPECT_EQ(look(world).state, StudyState::kStopped);
    EXPECT_EQ(look(world).end, StudyEnd::kFailures);
    EXPECT_THAT(look(world).note, HasSubstr("3 trials in a row failed alike"));
    EXPECT_THAT(*world.ask(), IsEmpty());
    world.reopen();
    EXPECT_EQ(look(world).end, StudyEnd::kFailures) << "kept over a restart";
    ASSERT_TRUE(world.create(kFive).has_value());
    EXPECT_EQ(look(world).excused, 3u);
    EXPECT_EQ(look(world).started_ms, 0) << "its time begins anew";
    const auto tried = succeed(world);
    EXPECT_THAT(tried, SizeIs(5)) << "the whole budget";
    for (const std::string& params : failed) EXPECT_TRUE(tried.contains(params)) << params;
    EXPECT_EQ(look(world).state, StudyState::kCompleted);
    EXPECT_EQ(world.count(TrialState::kFailed), 3u);
}

TEST(Failures, WhatRunsAndWaitsAtTheStopIsTriedAgainToo) {
    World world;
    ASSERT_TRUE(world.create(R"("budget": {"trials": 6})").has_value());
    const auto asked = world.ask(5);
    ASSERT_TRUE(asked && asked->size() == 5);
    ASSERT_TRUE(world.enqueue(R"({"x": 0.125})").has_value());
    // A client gives one up itself: that is no failure, and not the stop's doing.
    ASSERT_TRUE(world.tell({.trial = {"s", 4, 0}, .state = TrialState::kCancelled}).has_value());
    for (std::uint64_t number = 0; number < 3; ++number)
        ASSERT_TRUE(
            world.tell({.trial = {"s", number, 0}, .state = TrialState::kFailed, .reason = "boom"})
                .has_value());
    EXPECT_EQ(world.trial(3).state, TrialState::kCancelled) << "it ran";
    EXPECT_EQ(world.trial(5).state, TrialState::kCancelled) << "it waited";
    ASSERT_TRUE(world.change(Studies::Change::kResume).has_value());
    EXPECT_EQ(look(world).excused, 5u);
    const auto tried = succeed(world);
    EXPECT_THAT(tried, SizeIs(5)) << "one of six was cancelled by its client";
    EXPECT_TRUE(tried.contains(R"({"x":0.125})"));
    EXPECT_FALSE(tried.contains((*asked)[4].params_json));
}

TEST(Failures, ABudgetThatFailuresHaveUsedIsGivenBack) {
    World world;
    ASSERT_TRUE(world.create(R"("budget": {"trials": 2})").has_value());
    fail_one(world);
    fail_one(world);
    EXPECT_EQ(look(world).state, StudyState::kCompleted) << "too few to be sure";
    ASSERT_TRUE(world.create(R"("budget": {"trials": 2})").has_value());
    EXPECT_THAT(succeed(world), SizeIs(2));
}

TEST(Failures, StillBrokenStopsAgainAndExcusesEachTrialOnce) {
    World world;
    ASSERT_TRUE(world.create(kFive).has_value());
    for (int round = 1; round <= 3; ++round) {
        for (int i = 0; i < 3; ++i) fail_one(world, "round " + std::to_string(round));
        ASSERT_EQ(look(world).end, StudyEnd::kFailures);
        ASSERT_TRUE(world.create(kFive).has_value());
        EXPECT_EQ(look(world).excused, 3u * static_cast<std::size_t>(round));
        world.reopen();
        EXPECT_EQ(look(world).excused, 3u * static_cast<std::size_t>(round));
    }
    EXPECT_THAT(succeed(world), SizeIs(5));
    EXPECT_EQ(look(world).trials, 14u);
}

TEST(Failures, CostOfExcusedTrialsIsNoCostOfTheStudy) {
    World world;
    const char* fields = R"("budget": {"cost": {"metric": "eur", "max": 10}})";
    ASSERT_TRUE(world.create(fields).has_value());
    for (std::uint64_t number = 0; number < 3; ++number) {
        ASSERT_THAT(*world.ask(), SizeIs(1));
        ASSERT_TRUE(world
                        .tell({.trial = {"s", number, 0},
                               .state = TrialState::kFailed,
                               .reason = "boom",
                               .cost = 2})
                        .has_value());
    }
    EXPECT_EQ(look(world).paid, 6);
    ASSERT_TRUE(world.create(fields).has_value());
    EXPECT_EQ(look(world).paid, 0);
    world.reopen();
    EXPECT_EQ(look(world).paid, 0);
}

TEST(Failures, ThoseBeforeTheFirstSuccessOfARunUseUpNoBudget) {
    World world;
    ASSERT_TRUE(world.create(kFive).has_value());
    fail_one(world, "one way");
    world.advance_ms(5000);
    fail_one(world, "another way");
    EXPECT_EQ(look(world).excused, 0u) << "they may be all there is";
    world.advance_ms(5000);
    ASSERT_THAT(*world.ask(), SizeIs(1));
    ASSERT_TRUE(world.tell(2, 0.5).has_value());
    EXPECT_EQ(look(world).excused, 2u);
    EXPECT_EQ(look(world).started_ms, 1'700'000'010'000) << "when the trial that counts started";
    const std::string before = world.journal();
    world.reopen();
    EXPECT_EQ(world.journal(), before);
    EXPECT_EQ(look(world).excused, 2u) << "kept over a restart";
    EXPECT_EQ(look(world).started_ms, 1'700'000'010'000);
    fail_one(world, "after a success");
    EXPECT_EQ(look(world).excused, 2u);
    EXPECT_THAT(succeed(world), SizeIs(3)) << "with the first success and the failure: five";
    EXPECT_EQ(look(world).trials, 7u);
    expect_nothing_differs(world);
}

TEST(Failures, APrunedTrialIsASuccessToo) {
    World world;
    ASSERT_TRUE(world.create(R"("budget": {"cost": {"metric": "eur", "max": 10}})").has_value());
    ASSERT_THAT(*world.ask(), SizeIs(1));
    ASSERT_TRUE(
        world
            .tell({.trial = {"s", 0, 0}, .state = TrialState::kFailed, .reason = "boom", .cost = 4})
            .has_value());
    EXPECT_EQ(look(world).paid, 4);
    ASSERT_THAT(*world.ask(), SizeIs(1));
    ASSERT_TRUE(
        world.tell({.trial = {"s", 1, 0}, .state = TrialState::kPruned, .cost = 2}).has_value());
    EXPECT_EQ(look(world).excused, 1u);
    EXPECT_EQ(look(world).paid, 2);
    world.reopen();
    EXPECT_EQ(look(world).paid, 2);
}

TEST(Failures, AStudyWhoseClientDiedBeforeASuccessTriesAgain) {
    World world;
    ASSERT_TRUE(world.create(kFive).has_value());
    world.studies().warm_up();
    const std::string failed = fail_one(world);
    // The next one is in the hands of somebody: another client may be at work.
    const auto held = world.ask(1, "", World::kTtl_ms);
    ASSERT_TRUE(held && held->size() == 1);
    ASSERT_TRUE(world.create(kFive).has_value());
    EXPECT_EQ(look(world).excused, 0u);
    world.advance_ms(World::kTtl_ms + 1);
    ASSERT_TRUE(world.create(kFive).has_value());
    EXPECT_EQ(look(world).excused, 1u);
    EXPECT_EQ(look(world).trials, 3u);
    ASSERT_TRUE(world.create(kFive).has_value()) << "once more, with nothing new to excuse";
    EXPECT_EQ(look(world).excused, 1u);
    EXPECT_EQ(look(world).trials, 3u);
    const auto tried = succeed(world);
    EXPECT_THAT(tried, SizeIs(5));
    EXPECT_TRUE(tried.contains(failed)) << failed;
    expect_nothing_differs(world);
}

TEST(Failures, AfterASuccessFailuresCount) {
    World world;
    ASSERT_TRUE(world.create(kFive).has_value());
    ASSERT_THAT(*world.ask(), SizeIs(1));
    ASSERT_TRUE(world.tell(0, 0.5).has_value());
    for (int i = 0; i < 4; ++i) fail_one(world);
    expect_over_for_good(world, kFive);
}

TEST(Failures, WithZeroTheyCountAsAllOthers) {
    World world;
    const char* fields = R"("stop_after_failures": 0, "budget": {"trials": 5})";
    ASSERT_TRUE(world.create(fields).has_value());
    for (int i = 0; i < 5; ++i) fail_one(world);
    expect_over_for_good(world, fields);
}

TEST(Failures, AnAgentsTrialsAreStoppedToo) {
    World world;
    ASSERT_TRUE(world.create(kFive).has_value());
    ASSERT_TRUE(world.register_agent("a").has_value());
    const auto leased = world.lease("a", 4);
    ASSERT_TRUE(leased && leased->leases.size() == 4);
    for (std::size_t i = 0; i < 3; ++i)
        ASSERT_TRUE(world
                        .finish("a", token(leased->leases[i]),
                                {.request_id = std::to_string(i),
                                 .outcome = Outcome::kFailed,
                                 .reason = "exit code 1"})
                        .has_value());
    const auto beat = world.heartbeat("a", {token(leased->leases[3])});
    ASSERT_TRUE(beat.has_value());
    ASSERT_THAT(beat->directives, SizeIs(1));
    EXPECT_EQ(beat->directives[0].action, Action::kStop);
    EXPECT_THAT(beat->directives[0].reason, HasSubstr("failed alike"));
}

TEST(Failures, AReplayAfterThemDrawsTheSamePoints) {
    World world;
    const std::string fields = R"("sampler": {"type": "tpe", "seed": 3, "startup": 2},
                                   "budget": {"trials": 12})";
    ASSERT_TRUE(world.create(fields).has_value());
    for (int i = 0; i < 3; ++i) fail_one(world);
    ASSERT_TRUE(world.create(fields).has_value());
    ASSERT_THAT(*world.ask(), SizeIs(1));
    ASSERT_TRUE(world.tell(3, 0.25).has_value());
    const std::string before = world.journal();
    world.reopen();
    EXPECT_EQ(world.journal(), before);
    EXPECT_THAT(succeed(world), SizeIs(11));
    Answer<ReplayReport> answer;
    world.studies().replay("s", answer.done());
    const Result<ReplayReport> report = answer.get();
    ASSERT_TRUE(report.has_value()) << report.error().text();
    EXPECT_EQ(report->given, 3u) << "the points that were queued again";
    EXPECT_EQ(report->compared, 12u);
    EXPECT_EQ(report->differing, 0u);
}

}  // namespace
}  // namespace tune::tuner
