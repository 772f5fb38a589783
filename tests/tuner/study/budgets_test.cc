// What ends a study by itself: cost, no progress, the target; and trials that need not run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "tests/tuner/study/world.h"

namespace tune::tuner::budgets_test {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

struct Ended {
    StudyState state = StudyState::kRunning;
    StudyEnd end = StudyEnd::kNone;
    std::string note;
    double paid = 0;
    std::size_t trials = 0;
};

Ended look(World& world) {
    Ended seen;
    EXPECT_TRUE(world.studies()
                    .read("s",
                          [&](const Study& study) {
                              seen = {study.state(), study.status().end, study.status().note,
                                      study.budget().paid(), study.trials().size()};
                          })
                    .has_value());
    return seen;
}

TEST(Budgets, TargetEndsTheStudyAndStopsWhatRuns) {
    World world;
    ASSERT_TRUE(world.create(R"("budget": {"trials": 100, "target": 0.01})").has_value());
    ASSERT_THAT(*world.ask(3), SizeIs(3));
    ASSERT_TRUE(world.enqueue(R"({"x": 0.5})").has_value());
    ASSERT_TRUE(world.tell(0, 0.02).has_value());
    EXPECT_EQ(look(world).state, StudyState::kRunning);
    ASSERT_TRUE(world.tell(1, 0.01).has_value()) << "as good as the target is enough";
    EXPECT_EQ(look(world).end, StudyEnd::kTarget);
    EXPECT_EQ(look(world).note, "the target of 0.01 is reached");
    EXPECT_EQ(world.trial(2).state, TrialState::kCancelled);
    EXPECT_TRUE(world.tell(2, 0.5).has_value()) << "its client could not know";
    EXPECT_EQ(world.trial(2).state, TrialState::kCancelled) << "an end is an end";
    EXPECT_EQ(world.trial(3).state, TrialState::kCancelled) << "it waited";
    EXPECT_THAT(*world.ask(5), SizeIs(0));
    world.reopen();
    EXPECT_EQ(look(world).end, StudyEnd::kTarget) << "kept over a restart";
    ASSERT_TRUE(world.create(R"("budget": {"trials": 100, "target": 0.001})").has_value());
    EXPECT_EQ(look(world).end, StudyEnd::kNone);
    EXPECT_THAT(*world.ask(1), SizeIs(1)) << "a better target is gone for";
}

TEST(Budgets, TargetOfAMaximisedMetric) {
    World world;
    ASSERT_TRUE(
        world.create(R"("metric": {"name": "acc", "goal": "max"}, "budget": {"target": 0.9})")
            .has_value());
    ASSERT_THAT(*world.ask(2), SizeIs(2));
    ASSERT_TRUE(world.tell(0, 0.5).has_value());
    EXPECT_EQ(look(world).state, StudyState::kRunning);
    ASSERT_TRUE(world.tell(1, 0.95).has_value());
    EXPECT_EQ(look(world).end, StudyEnd::kTarget);
}

TEST(Budgets, NoProgressCountsTrialsWithoutAnImprovementOfTheDelta) {
    World world;
    ASSERT_TRUE(
        world.create(R"("budget": {"no_progress": {"trials": 3, "min_delta": 0.1}})").has_value());
    ASSERT_THAT(*world.ask(8), SizeIs(8));
    ASSERT_TRUE(world.tell(0, 1.0).has_value());
    ASSERT_TRUE(world.tell(1, 0.95).has_value()) << "better, by too little";
    ASSERT_TRUE(world.tell({.trial = {"s", 2, 0}, .state = TrialState::kFailed}).has_value());
    ASSERT_TRUE(world.tell(3, 0.8).has_value()) << "better by more than 0.1 than 1.0";
    ASSERT_TRUE(world.tell(4, 0.75).has_value());
    ASSERT_TRUE(world.tell(5, 0.75).has_value());
    EXPECT_EQ(look(world).state, StudyState::kRunning);
    world.reopen();
    EXPECT_EQ(look(world).state, StudyState::kRunning) << "counted the same from the journal";
    ASSERT_TRUE(world.tell(6, 2).has_value());
    EXPECT_EQ(look(world).end, StudyEnd::kNoProgress);
    EXPECT_EQ(look(world).note, "no progress in 3 trials");
    EXPECT_EQ(world.trial(7).state, TrialState::kCancelled);
}

TEST(Budgets, SecondsOfRunningTrialsAreCutOffWhenTheyAreUsed) {
    World world;
    ASSERT_TRUE(world.create(R"("budget": {"cost": {"of": "seconds", "max": 100}})").has_value());
    ASSERT_THAT(*world.ask(2), SizeIs(2));
    world.advance_ms(20'000);
    ASSERT_TRUE(world.tell(0, 1).has_value());
    EXPECT_DOUBLE_EQ(look(world).paid, 20);
    ASSERT_TRUE(world.register_agent("a").has_value());
    ASSERT_THAT(world.lease("a")->leases, SizeIs(1));
    // 20 paid, and two run: one for 20 s already. In 30 s they have used the rest.
    world.advance_ms(29'999);
    EXPECT_EQ(world.trial(1).state, TrialState::kRunning);
    EXPECT_THAT(*world.ask(1), SizeIs(1));
    world.advance_ms(1);
    EXPECT_EQ(world.trial(1).state, TrialState::kCancelled) << "a client has no connection";
    EXPECT_THAT(*world.ask(1), SizeIs(0));
    const auto told = world.heartbeat("a", {{world.trial(2).run_id, 1}});
    ASSERT_THAT(told->directives, SizeIs(1)) << "the agent's trial is told to stop";
    EXPECT_EQ(told->directives[0].action, Action::kStop);
    ASSERT_TRUE(world
                    .finish("a", {world.trial(2).run_id, 1},
                            {.request_id = "f", .outcome = Outcome::kCancelled})
                    .has_value());
    EXPECT_EQ(look(world).end, StudyEnd::kCost);
    EXPECT_THAT(look(world).note, HasSubstr("1m40s of running trials"));
}

TEST(Budgets, LostAttemptsCostTooAndARestartForgetsNothing) {
    World world;
    ASSERT_TRUE(world
                    .create(R"("budget": {"cost": {"of": "gpu_seconds", "max": "1000s"},
                                          "gpus_per_trial": 4})")
                    .has_value());
    ASSERT_TRUE(world.register_agent("a").has_value());
    ASSERT_THAT(world.lease("a")->leases, SizeIs(1));
    world.advance_ms(World::kTtl_ms);
    EXPECT_EQ(world.trial(0).state, TrialState::kQueued);
    EXPECT_DOUBLE_EQ(look(world).paid, 160) << "40 s of 4 GPUs";
    ASSERT_THAT(world.lease("a")->leases, SizeIs(1));
    world.reopen();
    ASSERT_TRUE(world.register_agent("a", {{world.trial(0).run_id, 2}}).has_value());
    EXPECT_DOUBLE_EQ(look(world).paid, 160);
    world.log(world.trial(0).run_id, "loss", 1, 0.5);
    world.advance_ms(10'000);
    ASSERT_TRUE(
        world
            .finish("a", {world.trial(0).run_id, 2}, {.request_id = "f", .outcome = Outcome::kDone})
            .has_value());
    EXPECT_DOUBLE_EQ(look(world).paid, 200);
}

TEST(Budgets, CostByAMetricKeepsRoomForWhatRuns) {
    World world;
    ASSERT_TRUE(
        world.create(R"("budget": {"cost": {"metric": "dollars", "max": 10}})").has_value());
    const auto spend = [&](std::uint64_t number, double dollars) {
        world.log(world.trial(number).run_id, "dollars", 1, dollars);
        ASSERT_TRUE(world.tell(number, 1).has_value());
    };
    ASSERT_THAT(*world.ask(2), SizeIs(2)) << "what a trial costs is not known yet";
    spend(0, 2);
    spend(1, 4);
    EXPECT_DOUBLE_EQ(look(world).paid, 6);
    // A trial costs 3 on average: one fits into the 4 that are left, two do not.
    ASSERT_THAT(*world.ask(5), SizeIs(1));
    world.reopen();
    EXPECT_THAT(*world.ask(5), SizeIs(0));
    spend(2, 3);
    EXPECT_EQ(look(world).end, StudyEnd::kCost) << "1 is left, and no trial costs so little";
    EXPECT_DOUBLE_EQ(look(world).paid, 9) << "never more than the budget";
}

TEST(Budgets, AMetricThatRunsOverEndsTheTrialsAtOnce) {
    World world;
    ASSERT_TRUE(
        world.create(R"("budget": {"cost": {"metric": "dollars", "max": 10}})").has_value());
    ASSERT_THAT(*world.ask(2), SizeIs(2));
    world.log(world.trial(0).run_id, "dollars", 1, 6);
    EXPECT_EQ(world.trial(1).state, TrialState::kRunning);
    world.log(world.trial(1).run_id, "dollars", 1, 4);
    // The observer is called after the answer; a further write waits for it.
    world.journal();
    EXPECT_EQ(*world.report(0, 0, 2, 1), Action::kStop);
    EXPECT_EQ(look(world).end, StudyEnd::kCost);
}

TEST(Budgets, ABoundForEachTrialKeepsTheCostWithinTheBudget) {
    World world;
    ASSERT_TRUE(world
                    .create(R"("budget": {"cost": {"metric": "dollars", "max": 10,
                                                   "per_trial": 3}})")
                    .has_value());
    const auto asked = world.ask(8);
    ASSERT_THAT(*asked, SizeIs(3)) << "three may cost 9, a fourth does not fit";
    for (const double dollars : {1.0, 3.0})
        world.log(world.trial(0).run_id, "dollars", static_cast<int>(dollars), dollars);
    world.log(world.trial(1).run_id, "dollars", 1, 3);
    world.log(world.trial(2).run_id, "dollars", 1, 3);
    world.journal();
    EXPECT_EQ(*world.report(0, 0, 5, 1), std::nullopt) << "all of its share is its own";
    ASSERT_TRUE(world.tell(0, 1).has_value());
    EXPECT_THAT(*world.ask(8), SizeIs(0)) << "1 is left";
    world.log(world.trial(1).run_id, "dollars", 2, 3.5);
    world.journal();
    EXPECT_EQ(*world.report(1, 0, 6, 1), Action::kStop) << "more than one may cost";
    EXPECT_EQ(*world.report(2, 0, 6, 1), std::nullopt);
    world.reopen();
    ASSERT_TRUE(world.tell(2, 1).has_value());
    ASSERT_TRUE(world.tell(1, 1).has_value());
    EXPECT_EQ(look(world).end, StudyEnd::kCost);
    EXPECT_DOUBLE_EQ(look(world).paid, 9.5);
}

TEST(Budgets, AnAttemptThatIsTriedAgainKeepsItsShare) {
    World world;
    ASSERT_TRUE(world
                    .create(R"("budget": {"cost": {"metric": "dollars", "max": 7,
                                                   "per_trial": 3}})")
                    .has_value());
    ASSERT_THAT(*world.ask(2, "", 1000), SizeIs(2));
    world.log(world.trial(0).run_id, "dollars", 1, 2);
    world.advance_ms(1000);
    EXPECT_EQ(world.trial(0).state, TrialState::kQueued);
    EXPECT_THAT(*world.ask(8), SizeIs(2)) << "2 are paid, 1 and 3 may come: no third of 3";
}

constexpr const char* kTwo =
    R"("metric": [{"name": "loss", "goal": "min"}, {"name": "acc", "goal": "max"}])";

Result<void> tell_both(World& world, std::uint64_t number, double loss, double acc) {
    return world.tell({.trial = {"s", number, 0}, .value = loss, .more_values = {acc}});
}

TEST(Budgets, TheTargetOfSeveralObjectivesIsReachedByOneTrial) {
    World world;
    ASSERT_TRUE(
        world.create(std::string(kTwo) + R"(, "budget": {"target": [0.1, 0.9]})").has_value());
    ASSERT_THAT(*world.ask(4), SizeIs(4));
    ASSERT_TRUE(tell_both(world, 0, 0.05, 0.5).has_value());
    ASSERT_TRUE(tell_both(world, 1, 0.5, 0.95).has_value());
    EXPECT_EQ(look(world).state, StudyState::kRunning) << "each reached one of them";
    ASSERT_TRUE(tell_both(world, 2, 0.1, 0.9).has_value());
    EXPECT_EQ(look(world).end, StudyEnd::kTarget);
    EXPECT_EQ(look(world).note, "the target of 0.1, 0.9 is reached");
    World other;
    EXPECT_THAT(other.create(std::string(kTwo) + R"(, "budget": {"target": 0.1})").error().text(),
                HasSubstr("target has 1 number and this study 2 objectives"));
}

TEST(Budgets, NoProgressOfSeveralObjectivesIsATrialThatTheFrontBeats) {
    World world;
    ASSERT_TRUE(world
                    .create(std::string(kTwo) +
                            R"(, "budget": {"no_progress": {"trials": 2, "min_delta": 0.1}})")
                    .has_value());
    ASSERT_THAT(*world.ask(8), SizeIs(8));
    ASSERT_TRUE(tell_both(world, 0, 1, 0.5).has_value());
    ASSERT_TRUE(tell_both(world, 1, 0.95, 0.55).has_value()) << "better, by too little";
    ASSERT_TRUE(tell_both(world, 2, 2, 0.7).has_value()) << "better in one of them";
    ASSERT_TRUE(tell_both(world, 3, 1.95, 0.65).has_value()) << "too near to trial 2";
    EXPECT_EQ(look(world).state, StudyState::kRunning);
    world.reopen();
    EXPECT_EQ(look(world).state, StudyState::kRunning) << "counted the same from the journal";
    ASSERT_TRUE(tell_both(world, 4, 0.5, 0.75).has_value()) << "dominates both";
    ASSERT_TRUE(tell_both(world, 5, 0.5, 0.5).has_value());
    ASSERT_TRUE(tell_both(world, 6, 3, 0.8).has_value()) << "better than 0.75 by too little";
    EXPECT_EQ(look(world).end, StudyEnd::kNoProgress);
}

TEST(Budgets, ExactWithManyAskersAtOnce) {
    World world;
    ASSERT_TRUE(world.create(R"("budget": {"trials": 50})").has_value());
    std::vector<Answer<std::vector<AskedTrial>>> answers(64);
    {
        std::vector<std::jthread> askers;
        for (auto& answer : answers)
            askers.emplace_back([&world, &answer] {
                world.studies().clients().ask({.study = "s", .count = 2}, answer.done());
            });
    }
    std::set<std::uint64_t> numbers;
    for (auto& answer : answers) {
        const auto asked = answer.get();
        for (const AskedTrial& trial : *asked)
            EXPECT_TRUE(numbers.insert(trial.number).second) << "given twice";
    }
    EXPECT_EQ(numbers.size(), 50u);
    EXPECT_EQ(look(world).trials, 50u);
}

// --- duplicates: reuse ---------------------------------------------------------------------------

constexpr const char* kFinite =
    R"("space": {"x": {"choice": ["a", "b", "c"]}}, "command": ["run"],
       "sampler": {"type": "tpe", "seed": 3, "startup": 2, "duplicates": "reuse"})";

TEST(Reuse, AKnownPointGetsItsValueWithoutRunning) {
    World world;
    ASSERT_TRUE(world.create(std::string(kFinite) + R"(, "budget": {"trials": 6})").has_value());
    ASSERT_TRUE(world.enqueue(R"({"x": "a"})").has_value());
    ASSERT_THAT(*world.ask(), SizeIs(1));
    ASSERT_TRUE(world.tell(0, 0.25).has_value());
    ASSERT_TRUE(world.enqueue(R"({"x": "a"})").has_value());
    const auto asked = world.ask();
    ASSERT_THAT(*asked, SizeIs(1));
    EXPECT_GT(asked->at(0).number, 1u) << "trial 1 did not run";
    EXPECT_NE(asked->at(0).params_json, R"({"x":"a"})");
    EXPECT_EQ(world.trial(1).state, TrialState::kComplete);
    EXPECT_EQ(world.trial(1).value, 0.25);
    EXPECT_EQ(world.trial(1).reason, "not run: trial 0 had the same point");
    const auto run = world.store().get_run(world.trial(1).run_id);
    ASSERT_TRUE(run.has_value());
    EXPECT_EQ(run->info.status, tracker::RunStatus::kFinished);
}

TEST(Reuse, EndsWithTheBudgetOrTheSpaceAndRunsEachPointOnce) {
    for (const std::uint64_t budget : {4u, 60u}) {
        World world;
        ASSERT_TRUE(world
                        .create(std::string(kFinite) + R"(, "budget": {"trials": )" +
                                std::to_string(budget) + "}")
                        .has_value());
        std::set<std::string> ran;
        for (auto asked = world.ask(); !asked->empty(); asked = world.ask()) {
            EXPECT_TRUE(ran.insert(asked->at(0).params_json).second) << "run twice";
            ASSERT_TRUE(
                world.tell(asked->at(0).number, static_cast<double>(ran.size())).has_value());
        }
        EXPECT_EQ(look(world).state, StudyState::kCompleted);
        EXPECT_LE(look(world).trials, budget);
        EXPECT_LE(ran.size(), 3u);
        if (look(world).end == StudyEnd::kSpace) {
            EXPECT_EQ(ran.size(), 3u);
        }
        const std::string journal = world.journal();
        world.reopen();
        EXPECT_EQ(world.journal(), journal);
    }
}

TEST(Reuse, APointThatFailedOrRunsIsNotKnown) {
    World world;
    ASSERT_TRUE(world.create(kFinite).has_value());
    ASSERT_TRUE(world.enqueue(R"({"x": "a"})").has_value());
    ASSERT_THAT(*world.ask(), SizeIs(1));
    ASSERT_TRUE(world.enqueue(R"({"x": "a"})").has_value());
    EXPECT_EQ(world.ask()->at(0).number, 1u) << "trial 0 has no value yet";
    ASSERT_TRUE(world.tell({.trial = {"s", 0, 0}, .state = TrialState::kFailed}).has_value());
    ASSERT_TRUE(world.enqueue(R"({"x": "a"})").has_value());
    EXPECT_EQ(world.ask()->at(0).number, 2u) << "it failed";
}

// --- request ids ---------------------------------------------------------------------------------

TEST(Requests, AnEnqueueIsRememberedAfterItsTrialWasAskedAndOverARestart) {
    World world;
    ASSERT_TRUE(world.create().has_value());
    const auto queued = world.enqueue(R"({"x": 0.5})", "same");
    ASSERT_TRUE(queued.has_value());
    EXPECT_EQ(world.ask(1, "same")->at(0).run_id, queued->run_id) << "asks have their own ids";
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(world.enqueue(R"({"x": 0.5})", "same")->run_id, queued->run_id);
        EXPECT_EQ(world.ask(1, "same")->at(0).attempt, 1) << "given again, not started again";
        EXPECT_EQ(look(world).trials, 1u);
        world.reopen();
    }
}

TEST(Requests, ARepeatedAskDoesNotTakeAnAttemptThatAnotherHoldsNow) {
    World world;
    ASSERT_TRUE(world.create().has_value());
    ASSERT_THAT(*world.ask(1, "first", 1000), SizeIs(1));
    world.advance_ms(1000);
    EXPECT_EQ(world.trial(0).state, TrialState::kQueued);
    EXPECT_EQ(world.ask(1, "second")->at(0).attempt, 2);
    const auto again = world.ask(1, "first");
    ASSERT_THAT(*again, SizeIs(1));
    EXPECT_EQ(again->at(0).number, 1u) << "a trial of its own";
}

}  // namespace
}  // namespace tune::tuner::budgets_test
