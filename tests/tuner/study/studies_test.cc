// Studies over a real store: creation, ask, report, tell, and what lands in MLflow's runs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "tests/tuner/study/world.h"

namespace tune::tuner {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::string tag_of(const tracker::Run& run, const std::string& key) {
    for (const tracker::Tag& tag : run.tags)
        if (tag.key == key) return tag.value;
    return "(absent)";
}

double metric_of(const tracker::Run& run, const std::string& key) {
    for (const tracker::Metric& metric : run.metrics)
        if (metric.key == key) return metric.value;
    return std::nan("");
}

class StudiesTest : public ::testing::Test {
protected:
    tracker::Run run(const std::string& run_id) {
        const auto run = world_.store().get_run(run_id);
        EXPECT_TRUE(run.has_value()) << run.error().text();
        return run ? *run : tracker::Run{};
    }
    std::string parent_run() {
        std::string run_id;
        EXPECT_TRUE(world_.studies()
                        .read("s", [&](const Study& s) { run_id = s.identity().run_id; })
                        .has_value());
        return run_id;
    }

    World world_;
};

TEST_F(StudiesTest, AStudyIsAParentRunInAnExperimentOfItsName) {
    const auto created = world_.create(R"("budget": {"trials": 3})");
    ASSERT_TRUE(created.has_value()) << created.error().text();
    EXPECT_TRUE(created->is_new);
    const auto experiment = world_.store().get_experiment_by_name("s");
    ASSERT_TRUE(experiment.has_value());
    const tracker::Run parent = run(parent_run());
    EXPECT_EQ(parent.info.experiment_id, experiment->experiment_id);
    EXPECT_EQ(parent.info.run_name, "s");
    EXPECT_EQ(parent.info.status, tracker::RunStatus::kRunning);
    EXPECT_EQ(tag_of(parent, "tune.study"), "s");
    EXPECT_EQ(tag_of(parent, "tune.metric"), "loss");
}

TEST_F(StudiesTest, RunsBearTheirUserAsThoseOfMlflowsClientsDo) {
    ::setenv("LOGNAME", "ada", 1);
    ASSERT_TRUE(world_.create().has_value());
    ::setenv("LOGNAME", "another", 1);
    world_.reopen();
    const tracker::Run trial = run(world_.ask()->at(0).run_id);
    for (const tracker::Run& one : {run(parent_run()), trial}) {
        EXPECT_EQ(tag_of(one, "mlflow.user"), "ada");
        EXPECT_EQ(one.info.user_id, "ada");
    }
    ::unsetenv("LOGNAME");
}

TEST_F(StudiesTest, ATrialIsANestedRunFromAskToTell) {
    ASSERT_TRUE(world_.create().has_value());
    const auto asked = world_.ask();
    ASSERT_TRUE(asked.has_value()) << asked.error().text();
    const AskedTrial& trial = asked->at(0);
    EXPECT_EQ(trial.number, 0u);
    EXPECT_EQ(trial.attempt, 1);
    tracker::Run shown = run(trial.run_id);
    EXPECT_EQ(shown.info.status, tracker::RunStatus::kRunning);
    EXPECT_EQ(shown.info.run_name, "s-0");
    EXPECT_EQ(tag_of(shown, "mlflow.parentRunId"), parent_run());
    EXPECT_EQ(tag_of(shown, "tune.trial"), "0");
    EXPECT_EQ(tag_of(shown, "tune.state"), "running");
    ASSERT_EQ(shown.params.size(), 1u);
    EXPECT_EQ(shown.params[0].key, "x");

    const auto action = world_.report(0, 1, 0, 0.5);
    ASSERT_TRUE(action.has_value()) << action.error().text();
    EXPECT_FALSE(action->has_value());
    ASSERT_TRUE(world_.tell(0, 0.25).has_value());
    shown = run(trial.run_id);
    EXPECT_EQ(shown.info.status, tracker::RunStatus::kFinished);
    EXPECT_TRUE(shown.info.end_time_ms.has_value());
    EXPECT_EQ(tag_of(shown, "tune.state"), "complete");
    EXPECT_EQ(metric_of(shown, "tune.value"), 0.25);
    EXPECT_EQ(metric_of(shown, "loss"), 0.25);
    world_.store().wait_for_observers();
    const tracker::Run parent = run(parent_run());
    EXPECT_EQ(metric_of(parent, "loss"), 0.25);
    EXPECT_EQ(tag_of(parent, "tune.best_trial"), "0");
    EXPECT_EQ(tag_of(parent, "tune.best_run_id"), trial.run_id);
}

TEST_F(StudiesTest, TellWithoutAValueTakesWhatWasReported) {
    ASSERT_TRUE(world_.create().has_value());
    const AskedTrial trial = world_.ask()->at(0);
    const auto empty = world_.tell({.trial = {"s", 0, 0}});
    ASSERT_FALSE(empty.has_value());
    EXPECT_THAT(empty.error().message, HasSubstr("no value was given, and none was reported"));
    world_.log(trial.run_id, "loss", 1, 0.5);
    world_.log(trial.run_id, "loss", 2, 0.75);
    ASSERT_TRUE(world_.tell({.trial = {"s", 0, 0}}).has_value());
    EXPECT_EQ(world_.trial(0).value, 0.5);
}

TEST_F(StudiesTest, StatesAreMlflowStatuses) {
    ASSERT_TRUE(world_.create().has_value());
    ASSERT_TRUE(world_.ask(4).has_value());
    const auto end = [&](std::uint64_t number, TrialState state, std::optional<double> value) {
        ASSERT_TRUE(world_
                        .tell({.trial = {"s", number, 0},
                               .state = state,
                               .value = value,
                               .reason = "because"})
                        .has_value());
    };
    end(0, TrialState::kPruned, 1.0);
    end(1, TrialState::kFailed, {});
    end(2, TrialState::kCancelled, {});
    end(3, TrialState::kComplete, std::nan(""));
    EXPECT_EQ(run(world_.trial(0).run_id).info.status, tracker::RunStatus::kKilled);
    EXPECT_EQ(run(world_.trial(1).run_id).info.status, tracker::RunStatus::kFailed);
    EXPECT_EQ(tag_of(run(world_.trial(1).run_id), "tune.reason"), "because");
    EXPECT_EQ(run(world_.trial(2).run_id).info.status, tracker::RunStatus::kKilled);
    EXPECT_EQ(world_.trial(3).state, TrialState::kFailed) << "NaN";
}

TEST_F(StudiesTest, NeverMoreTrialsThanTheBudget) {
    ASSERT_TRUE(world_.create(R"("budget": {"trials": 3})").has_value());
    EXPECT_EQ(world_.ask(2)->size(), 2u);
    EXPECT_EQ(world_.ask(5)->size(), 1u);
    EXPECT_EQ(world_.ask(5)->size(), 0u);
    for (std::uint64_t number = 0; number < 3; ++number)
        ASSERT_TRUE(world_.tell(number, 1).has_value());
    EXPECT_EQ(world_.state(), StudyState::kCompleted);
    EXPECT_EQ(world_.ask(1)->size(), 0u);
    const auto grown = world_.create(R"("budget": {"trials": 4})");
    ASSERT_TRUE(grown.has_value());
    EXPECT_FALSE(grown->is_new);
    EXPECT_EQ(world_.ask(5)->size(), 1u);
}

TEST_F(StudiesTest, CallsAreIdempotentByRequestId) {
    ASSERT_TRUE(world_.create().has_value());
    const auto first = world_.ask(2, "request-1");
    const auto again = world_.ask(2, "request-1");
    ASSERT_TRUE(again.has_value());
    ASSERT_EQ(again->size(), 2u);
    EXPECT_EQ(again->at(1).run_id, first->at(1).run_id);
    const TellRequest told{.trial = {"s", 0, 1}, .request_id = "request-2", .value = 1};
    ASSERT_TRUE(world_.tell(told).has_value());
    EXPECT_TRUE(world_.tell(told).has_value());
    EXPECT_TRUE(world_.tell(0, 1).has_value()) << "the same end again";
    const auto other = world_.tell(0, 2);
    ASSERT_FALSE(other.has_value());
    EXPECT_EQ(other.error().code, Code::kResourceConflict);
    ASSERT_TRUE(world_.report(1, 1, 5, 0.5).has_value());
    ASSERT_TRUE(world_.report(1, 1, 5, 0.5).has_value());
    const auto rows = world_.store().metric_history(first->at(1).run_id, "loss");
    EXPECT_EQ(rows->items.size(), 1u);

    Answer<AskedTrial> one;
    Answer<AskedTrial> two;
    world_.studies().clients().enqueue("s", R"({"x": 0.5})", "request-3", one.done());
    const std::uint64_t number = one.get()->number;
    world_.studies().clients().enqueue("s", R"({"x": 0.5})", "request-3", two.done());
    EXPECT_EQ(two.get()->number, number);
}

TEST_F(StudiesTest, EnqueuedValuesAreTriedNext) {
    ASSERT_TRUE(world_.create().has_value());
    Answer<AskedTrial> queued;
    world_.studies().clients().enqueue("s", R"({"x": 0.125})", "", queued.done());
    ASSERT_TRUE(queued.get().has_value());
    EXPECT_EQ(run(world_.trial(0).run_id).info.status, tracker::RunStatus::kScheduled);
    EXPECT_EQ(world_.ask()->at(0).params_json, R"({"x":0.125})");
    Answer<AskedTrial> bad;
    world_.studies().clients().enqueue("s", R"({"y": 1})", "", bad.done());
    EXPECT_EQ(bad.get().error().code, Code::kInvalidParameterValue);
}

TEST_F(StudiesTest, ALeasedAskEndsWithoutReports) {
    ASSERT_TRUE(world_.create().has_value());
    ASSERT_TRUE(world_.ask(1, "", 10'000).has_value());
    world_.advance_ms(9'000);
    ASSERT_TRUE(world_.report(0, 1, 0, 1).has_value()) << "a report renews the lease";
    world_.advance_ms(9'000);
    EXPECT_EQ(world_.trial(0).state, TrialState::kRunning);
    world_.advance_ms(1'000);
    EXPECT_EQ(world_.trial(0).state, TrialState::kQueued);
    EXPECT_EQ(world_.ask()->at(0).attempt, 2);
    const auto late = world_.report(0, 1, 1, 1);
    EXPECT_EQ(late.error().code, Code::kResourceConflict);
    const auto told = world_.tell({.trial = {"s", 0, 1}, .value = 1});
    EXPECT_EQ(told.error().code, Code::kResourceConflict);
}

TEST_F(StudiesTest, AReportReturnsThePrunersDecision) {
    ASSERT_TRUE(world_.create(R"("pruner": {"type": "median", "startup": 2})").has_value());
    ASSERT_TRUE(world_.ask(3).has_value());
    for (std::uint64_t number = 0; number < 2; ++number) {
        EXPECT_FALSE(world_.report(number, 1, 1, 0.1)->has_value());
        ASSERT_TRUE(world_.tell(number, 0.1).has_value());
    }
    const auto verdict = world_.report(2, 1, 1, 9);
    ASSERT_TRUE(verdict.has_value());
    EXPECT_EQ(*verdict, Action::kPrune);
    ASSERT_TRUE(world_.tell({.trial = {"s", 2, 1}, .state = TrialState::kPruned}).has_value());
    EXPECT_EQ(world_.trial(2).value, 9);
}

TEST_F(StudiesTest, ResumingWithAnotherSpaceReportsWhatDiffers) {
    ASSERT_TRUE(world_.create().has_value());
    StudyConfig other = World::config("");
    other.metric.goal = Goal::kMaximize;
    Answer<Studies::Created> answer;
    world_.studies().create(other, answer.done());
    const auto refused = answer.get();
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, Code::kResourceConflict);
    EXPECT_THAT(refused.error().message, HasSubstr("goal is max, was min"));
}

TEST_F(StudiesTest, PauseResumeStop) {
    ASSERT_TRUE(world_.create().has_value());
    ASSERT_TRUE(world_.ask(2).has_value());
    ASSERT_TRUE(world_.change(Studies::Change::kPause).has_value());
    EXPECT_EQ(world_.ask()->size(), 0u);
    EXPECT_EQ(run(parent_run()).info.status, tracker::RunStatus::kScheduled);
    ASSERT_TRUE(world_.tell(0, 1).has_value()) << "running trials go on";
    ASSERT_TRUE(world_.change(Studies::Change::kResume).has_value());
    EXPECT_EQ(world_.ask()->size(), 1u);
    ASSERT_TRUE(world_.change(Studies::Change::kStop).has_value());
    EXPECT_EQ(world_.trial(1).state, TrialState::kCancelled);
    EXPECT_EQ(run(parent_run()).info.status, tracker::RunStatus::kKilled);
    EXPECT_EQ(*world_.report(1, 1, 1, 1), Action::kStop) << "told at its next report";
    ASSERT_TRUE(world_.change(Studies::Change::kResume).has_value());
    EXPECT_EQ(world_.ask()->size(), 1u);
}

TEST_F(StudiesTest, ADeletedRunDoesNotHoldUpTheTrial) {
    ASSERT_TRUE(world_.create().has_value());
    const AskedTrial trial = world_.ask()->at(0);
    ASSERT_TRUE(world_.store().execute(tracker::DeleteRun{trial.run_id}).has_value());
    ASSERT_TRUE(world_.tell({.trial = {"s", 0, 0}, .value = 0.5}).has_value());
    EXPECT_EQ(world_.trial(0).state, TrialState::kComplete);
    world_.reopen();
    EXPECT_EQ(world_.trial(0).value, 0.5);
}

TEST_F(StudiesTest, ADeletedExperimentStopsNoStudyAndIsNamed) {
    ASSERT_TRUE(world_.create().has_value());
    const auto experiment = world_.store().get_experiment_by_name("s");
    ASSERT_TRUE(
        world_.store().execute(tracker::DeleteExperiment{experiment->experiment_id}).has_value());
    // Whether the deletion was observed by now or is met by the write, in the end it is known.
    EXPECT_FALSE(world_.ask().has_value());
    EXPECT_FALSE(world_.tell(99, 0).has_value()) << "answered after what was committed is observed";
    EXPECT_THAT(world_.ask().error().message, HasSubstr("was deleted by an MLflow client"));
    EXPECT_EQ(world_.state(), StudyState::kRunning);
    EXPECT_EQ(world_.count(TrialState::kRunning), 0u);
}

TEST_F(StudiesTest, ADeletedExperimentDoesNotKeepItsNameFromAStudy) {
    const auto old = world_.store().execute(tracker::CreateExperiment{.name = "s"});
    ASSERT_TRUE(old.has_value());
    const auto old_id = std::get<tracker::ExperimentId>(*old);
    ASSERT_TRUE(world_.store().execute(tracker::DeleteExperiment{old_id}).has_value());
    ASSERT_TRUE(world_.create().has_value());
    ASSERT_TRUE(world_.ask().has_value());
    EXPECT_NE(run(parent_run()).info.experiment_id, old_id);
}

TEST_F(StudiesTest, UnknownNamesAreErrorsThatNameThem) {
    EXPECT_EQ(world_.ask().error().code, Code::kResourceDoesNotExist);
    EXPECT_THAT(world_.ask().error().message, HasSubstr("'s'"));
    ASSERT_TRUE(world_.create().has_value());
    EXPECT_EQ(world_.tell(7, 1).error().code, Code::kResourceDoesNotExist);
    EXPECT_EQ(world_.report(7, 1, 0, 1).error().code, Code::kResourceDoesNotExist);
    EXPECT_EQ(world_.ask(0).error().code, Code::kInvalidParameterValue);
    StudyConfig slash = World::config("");
    slash.study = "a/b";
    Answer<Studies::Created> answer;
    world_.studies().create(slash, answer.done());
    EXPECT_EQ(answer.get().error().code, Code::kInvalidParameterValue);
}

TEST_F(StudiesTest, AWaitEndsWithTheNextChange) {
    ASSERT_TRUE(world_.create().has_value());
    std::int64_t version = 0;
    ASSERT_TRUE(
        world_.studies().read("s", [&](const Study& s) { version = s.version(); }).has_value());
    Answer<void> waiting;
    world_.studies().wait("s", version, 10'000, waiting.done());
    EXPECT_FALSE(waiting.is_there());
    ASSERT_TRUE(world_.ask().has_value());
    EXPECT_TRUE(waiting.get().has_value());
    Answer<void> timed;
    ASSERT_TRUE(
        world_.studies().read("s", [&](const Study& s) { version = s.version(); }).has_value());
    world_.studies().wait("s", version, 10'000, timed.done());
    world_.advance_ms(10'000);
    EXPECT_TRUE(timed.get().has_value());
}

}  // namespace
}  // namespace tune::tuner
