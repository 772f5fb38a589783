// Studies that are renamed, removed and restored; when they end and how long trials ran.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tuner/study/world.h"
#include "tuner/study/registry/attempt_credentials.h"

namespace tune::tuner {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class Lifecycle : public ::testing::Test {
protected:
    Result<void> rename(const std::string& name, const std::string& to) {
        Answer<void> answer;
        world_.studies().rename(name, to, answer.done());
        return answer.get();
    }
    Result<void> erase() {
        Answer<void> answer;
        world_.studies().erase("s", answer.done());
        return answer.get();
    }
    Result<void> restore() {
        Answer<void> answer;
        world_.studies().restore("s", answer.done());
        return answer.get();
    }
    Result<Studies::Created> replace(const std::string& fields) {
        Answer<Studies::Created> answer;
        world_.studies().create(World::config(fields), {.replace = true}, answer.done());
        return answer.get();
    }
    std::string parent_run() {
        std::string run_id;
        EXPECT_TRUE(world_.studies()
                        .read("s", [&](const Study& study) { run_id = study.identity().run_id; })
                        .has_value());
        return run_id;
    }
    tracker::RunInfo info(const std::string& run_id) {
        auto found = world_.store().get_run_info(run_id);
        EXPECT_TRUE(found.has_value());
        return found.value();
    }
    std::int64_t ran_ms(std::uint64_t number) {
        std::int64_t ran = 0;
        EXPECT_TRUE(
            world_.studies()
                .read("s", [&](const Study& study) { ran = study.trials().find(number)->ran_ms; })
                .has_value());
        return ran;
    }
    World world_;
};

TEST_F(Lifecycle, ResumingACompletedStudyDoesNotMoveItsEnd) {
    const char* fields = R"("budget": {"trials": 1})";
    ASSERT_TRUE(world_.create(fields).has_value());
    ASSERT_THAT(*world_.ask(), SizeIs(1));
    world_.advance_ms(5000);
    ASSERT_TRUE(world_.tell(0, 0.5).has_value());
    ASSERT_EQ(world_.state(), StudyState::kCompleted);
    static_cast<void>(world_.journal());  // all is on disk
    const auto ended_ms = info(parent_run()).end_time_ms;
    ASSERT_TRUE(ended_ms.has_value());
    EXPECT_EQ(ended_ms, info(world_.trial(0).run_id).end_time_ms);
    world_.advance_ms(60'000);
    ASSERT_TRUE(world_.change(Studies::Change::kResume).has_value());
    EXPECT_EQ(info(parent_run()).end_time_ms, ended_ms);
    ASSERT_TRUE(world_.create(fields).has_value()) << "the same command once more";
    EXPECT_EQ(info(parent_run()).end_time_ms, ended_ms);
}

TEST_F(Lifecycle, ATrialsTimeLeavesOutWhatItWaited) {
    ASSERT_TRUE(world_.create().has_value());
    ASSERT_TRUE(world_.register_agent("a").has_value());
    const auto first = world_.lease("a");
    ASSERT_TRUE(first && first->leases.size() == 1);
    world_.advance_ms(3000);
    ASSERT_TRUE(world_.change(Studies::Change::kPause).has_value());
    ASSERT_TRUE(world_
                    .finish("a", token(first->leases[0]),
                            {.request_id = "f", .outcome = Outcome::kPreempted, .reason = "paused"})
                    .has_value());
    EXPECT_EQ(ran_ms(0), 3000);
    world_.advance_ms(3'600'000);
    world_.reopen();
    ASSERT_TRUE(world_.change(Studies::Change::kResume).has_value());
    ASSERT_TRUE(world_.register_agent("a").has_value());
    const auto second = world_.lease("a");
    ASSERT_TRUE(second && second->leases.size() == 1);
    EXPECT_EQ(second->leases[0].number, 0);
    world_.advance_ms(4000);
    world_.log(second->leases[0].run_id, "loss", 0, 0.5);
    ASSERT_TRUE(
        world_.finish("a", token(second->leases[0]), {.request_id = "g", .outcome = Outcome::kDone})
            .has_value());
    EXPECT_EQ(ran_ms(0), 7000);
    world_.reopen();
    EXPECT_EQ(ran_ms(0), 7000);
}

TEST_F(Lifecycle, ARenamedStudyGoesOnUnderItsNewName) {
    ASSERT_TRUE(world_.create().has_value());
    ASSERT_THAT(*world_.ask(), SizeIs(1));
    EXPECT_EQ(rename("s", "t").error().code, Code::kResourceConflict) << "a trial runs";
    ASSERT_TRUE(world_.tell(0, 0.5).has_value());
    EXPECT_EQ(rename("s", "a/b").error().code, Code::kInvalidParameterValue);
    ASSERT_TRUE(rename("s", "t").has_value());
    EXPECT_EQ(world_.ask().error().code, Code::kResourceDoesNotExist);
    world_.reopen();
    EXPECT_EQ(world_.ask().error().code, Code::kResourceDoesNotExist);
    ASSERT_TRUE(world_.create().has_value()) << "the old name is free";
    EXPECT_EQ(rename("s", "t").error().code, Code::kResourceAlreadyExists);
    std::size_t trials = 0;
    ASSERT_TRUE(world_.studies()
                    .read("t", [&](const Study& study) { trials = study.trials().size(); })
                    .has_value());
    EXPECT_EQ(trials, 1u);
}

TEST_F(Lifecycle, AnErasedStudyEndsItsAttemptsAndComesBack) {
    ASSERT_TRUE(world_.create().has_value());
    ASSERT_TRUE(world_.register_agent("a").has_value());
    const auto leased = world_.lease_with_token("a");
    ASSERT_TRUE(leased && leased->leases.size() == 1);
    const std::string token_text = leased->leases[0].token;
    ASSERT_TRUE(world_.studies().credentials().find(token_text)->current->load());
    const std::string parent = parent_run();
    ASSERT_TRUE(erase().has_value());
    const auto standing = world_.studies().credentials().find(token_text);
    ASSERT_TRUE(standing.has_value());
    EXPECT_FALSE(standing->current->load()) << "its credential is worth nothing";
    const auto beat = world_.heartbeat("a", {token(leased->leases[0])});
    ASSERT_TRUE(beat.has_value());
    EXPECT_THAT(beat->lost, SizeIs(1)) << "the agent ends it";
    EXPECT_EQ(
        world_.finish("a", token(leased->leases[0]), {.request_id = "f", .outcome = Outcome::kDone})
            .error()
            .code,
        Code::kResourceConflict);
    static_cast<void>(world_.journal());
    EXPECT_EQ(info(parent).lifecycle_stage, tracker::LifecycleStage::kDeleted);
    world_.reopen();
    EXPECT_EQ(world_.ask().error().code, Code::kResourceDoesNotExist);
    ASSERT_TRUE(restore().has_value());
    EXPECT_EQ(world_.trial(0).state, TrialState::kCancelled);
    EXPECT_EQ(world_.state(), StudyState::kPaused);
    ASSERT_TRUE(world_.change(Studies::Change::kResume).has_value());
    EXPECT_THAT(*world_.ask(), SizeIs(1));
    EXPECT_EQ(info(parent).lifecycle_stage, tracker::LifecycleStage::kActive);
    EXPECT_EQ(restore().error().code, Code::kResourceAlreadyExists);
}

TEST_F(Lifecycle, RestoredInTheSameProcessItsAgentsAreFound) {
    ASSERT_TRUE(world_.create().has_value());
    ASSERT_THAT(*world_.ask(), SizeIs(1));
    ASSERT_TRUE(world_.tell(0, 0.5).has_value());
    ASSERT_TRUE(erase().has_value());
    ASSERT_TRUE(restore().has_value());
    ASSERT_TRUE(world_.change(Studies::Change::kResume).has_value());
    ASSERT_TRUE(world_.register_agent("a").has_value());
    const auto leased = world_.lease("a");
    ASSERT_TRUE(leased && leased->leases.size() == 1);
    world_.log(leased->leases[0].run_id, "loss", 0, 0.25);
    ASSERT_TRUE(
        world_.finish("a", token(leased->leases[0]), {.request_id = "f", .outcome = Outcome::kDone})
            .has_value());
    EXPECT_EQ(world_.trial(1).value, 0.25);
}

TEST_F(Lifecycle, NothingIsRestoredThatIsNotThere) {
    EXPECT_EQ(restore().error().code, Code::kResourceDoesNotExist);
    EXPECT_EQ(erase().error().code, Code::kResourceDoesNotExist);
    EXPECT_EQ(rename("s", "t").error().code, Code::kResourceDoesNotExist);
}

TEST_F(Lifecycle, OnlyAStudyWithoutResultsIsReplaced) {
    ASSERT_TRUE(world_.create().has_value());
    ASSERT_THAT(*world_.ask(), SizeIs(1));
    const std::string other = R"("space": {"x": {"float": [0, 2]}})";
    EXPECT_TRUE(replace("").has_value()) << "nothing differs";
    ASSERT_TRUE(world_.tell({.trial = {"s", 0, 0}, .state = TrialState::kFailed, .reason = "a"}));
    const auto replaced = replace(other);
    ASSERT_TRUE(replaced.has_value()) << replaced.error().text();
    EXPECT_TRUE(replaced->is_new);
    EXPECT_THAT(replaced->replaced, HasSubstr("space.x is"));
    ASSERT_THAT(*world_.ask(), SizeIs(1));
    EXPECT_EQ(world_.trial(0).attempt, 1) << "it begins anew";
    ASSERT_TRUE(world_.tell(0, 0.5).has_value());
    EXPECT_EQ(replace("").error().code, Code::kResourceConflict) << "it has a result";
    EXPECT_EQ(world_.create("").error().code, Code::kResourceConflict);
}

TEST_F(Lifecycle, AStudyWhoseTrialsRunIsNotReplaced) {
    world_.studies().warm_up();
    ASSERT_TRUE(world_.create().has_value());
    ASSERT_TRUE(world_.register_agent("a").has_value());
    ASSERT_TRUE(world_.lease("a").has_value());
    const auto held = replace(R"("space": {"x": {"float": [0, 2]}})");
    EXPECT_EQ(held.error().code, Code::kResourceConflict);
    EXPECT_THAT(held.error().message, HasSubstr("wait until nobody runs its trials any more"));
    EXPECT_EQ(world_.count(TrialState::kRunning), 1u);
}

TEST_F(Lifecycle, ADeletedExperimentIsSaidAndTheStudyGoesOnOnceItIsRestored) {
    ASSERT_TRUE(world_.create().has_value());
    ASSERT_THAT(*world_.ask(), SizeIs(1));
    const auto experiment = world_.store().get_experiment_by_name("s");
    ASSERT_TRUE(
        world_.store().execute(tracker::DeleteExperiment{experiment->experiment_id}).has_value());
    world_.reopen();
    const auto refused = world_.ask();
    ASSERT_FALSE(refused.has_value());
    EXPECT_THAT(refused.error().message, HasSubstr("was deleted by an MLflow client"));
    EXPECT_THAT(refused.error().message, HasSubstr("tune restore --study s"));
    for (const auto change :
         {Studies::Change::kPause, Studies::Change::kResume, Studies::Change::kStop})
        EXPECT_EQ(world_.change(change).error().code, Code::kResourceConflict);
    EXPECT_EQ(world_.create().error().code, Code::kResourceConflict);
    EXPECT_EQ(world_.state(), StudyState::kRunning) << "nobody paused it";
    ASSERT_TRUE(restore().has_value());
    ASSERT_TRUE(world_.tell(0, 0.5).has_value()) << "it ran all the time";
    EXPECT_EQ(info(world_.trial(0).run_id).status, tracker::RunStatus::kFinished);
    const auto again = world_.ask();
    ASSERT_TRUE(again && again->size() == 1);
    EXPECT_EQ(again->front().number, 1u);
}

TEST_F(Lifecycle, NobodyAttendsToAStudyWhoseClientIsSilent) {
    const auto is_attended = [&] {
        bool attended = false;
        EXPECT_TRUE(
            world_.studies()
                .read("s", [&](const Study& study) { attended = study.attendance().is_attended; })
                .has_value());
        return attended;
    };
    ASSERT_TRUE(world_.create().has_value());
    EXPECT_FALSE(is_attended()) << "it is only looked at: there is no server";
    world_.studies().warm_up();
    EXPECT_TRUE(is_attended());
    world_.advance_ms(World::kTtl_ms + 1);
    EXPECT_FALSE(is_attended());
    ASSERT_THAT(*world_.ask(1, "", 2 * World::kTtl_ms), SizeIs(1));
    world_.advance_ms(World::kTtl_ms + 1);
    EXPECT_TRUE(is_attended()) << "its lease lasts";
    world_.advance_ms(World::kTtl_ms + 1);
    EXPECT_FALSE(is_attended());
    EXPECT_EQ(world_.count(TrialState::kRunning), 0u);
}

TEST_F(Lifecycle, AClientWithoutALeaseThatIsSilentForLongIsTakenForGone) {
    const auto is_attended = [&] {
        bool attended = false;
        EXPECT_TRUE(
            world_.studies()
                .read("s", [&](const Study& study) { attended = study.attendance().is_attended; })
                .has_value());
        return attended;
    };
    const auto shown = [&] {
        EXPECT_NE(world_.journal(), "") << "read once all is written";
        return info(parent_run()).status;
    };
    ASSERT_TRUE(world_.create().has_value());
    world_.studies().warm_up();
    ASSERT_THAT(*world_.ask(), SizeIs(1));
    world_.advance_ms(19 * World::kTtl_ms);
    EXPECT_TRUE(is_attended()) << "it may train for long without a word";
    EXPECT_EQ(shown(), tracker::RunStatus::kRunning);
    std::int64_t version = 0;
    ASSERT_TRUE(world_.studies()
                    .read("s", [&](const Study& study) { version = study.version(); })
                    .has_value());
    world_.log(world_.trial(0).run_id, "loss", 1, 0.5);  // its MLflow client is alive
    Answer<void> observed;
    world_.studies().wait("s", version, 60'000, observed.done());
    ASSERT_TRUE(observed.get().has_value());
    world_.advance_ms(19 * World::kTtl_ms);
    EXPECT_TRUE(is_attended());
    world_.advance_ms(World::kTtl_ms + 1);
    EXPECT_FALSE(is_attended());
    EXPECT_EQ(shown(), tracker::RunStatus::kScheduled) << "MLflow's tools see it too";
    EXPECT_EQ(world_.count(TrialState::kRunning), 1u) << "the trial stays the client's";
    ASSERT_TRUE(world_.tell(0, 0.5).has_value()) << "it was only slow";
    EXPECT_TRUE(is_attended());
    EXPECT_EQ(shown(), tracker::RunStatus::kRunning);
    world_.advance_ms(World::kTtl_ms + 1);
    EXPECT_EQ(shown(), tracker::RunStatus::kScheduled);
}

}  // namespace
}  // namespace tune::tuner
