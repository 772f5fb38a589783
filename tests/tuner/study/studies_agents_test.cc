// The agent protocol over a real store: leases, fencing, heartbeats, directives.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tuner/study/world.h"

namespace tune::tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class AgentsTest : public ::testing::Test {
protected:
    AgentsTest() {
        EXPECT_TRUE(world_.create(R"("budget": {"trials": 5})").has_value());
        EXPECT_TRUE(world_.register_agent("a").has_value());
        EXPECT_TRUE(world_.register_agent("b").has_value());
    }
    Lease lease(const std::string& agent = "a") {
        const auto reply = world_.lease(agent);
        EXPECT_TRUE(reply.has_value()) << reply.error().text();
        EXPECT_THAT(reply->leases, SizeIs(1));
        return reply && !reply->leases.empty() ? reply->leases[0] : Lease{};
    }
    Result<FinishReply> finish(const std::string& agent, const Lease& lease, Outcome outcome,
                               const std::string& request_id = "") {
        return world_.finish(agent, token(lease),
                             {.request_id = request_id, .outcome = outcome, .reason = "why"});
    }
    /// Two complete trials, so that the median pruner has something to compare with.
    void complete_two() {
        for (int i = 0; i < 2; ++i) {
            const Lease one = lease();
            world_.log(one.run_id, "loss", 1, 0.1);
            EXPECT_TRUE(finish("a", one, Outcome::kDone).has_value());
        }
    }

    World world_;
};

TEST_F(AgentsTest, ALeaseHoldsWhatTheCommandNeeds) {
    const Lease one = lease();
    EXPECT_EQ(one.study, "s");
    EXPECT_EQ(one.number, 0);
    EXPECT_EQ(one.attempt, 1);
    EXPECT_EQ(one.metric, "loss");
    ASSERT_THAT(one.command, SizeIs(2));
    EXPECT_EQ(one.params_json, "{\"x\":" + one.command[1] + "}");
    EXPECT_THAT(one.checkpoint_dir, HasSubstr("/00000000"));
    EXPECT_EQ(world_.trial(0).state, TrialState::kRunning);
}

TEST_F(AgentsTest, DoneTakesTheMetricThatAnyClientLogged) {
    const Lease one = lease();
    world_.log(one.run_id, "loss", 1, 0.5);
    world_.log(one.run_id, "loss", 2, 0.25);
    world_.log(one.run_id, "accuracy", 2, 0.9);
    ASSERT_TRUE(finish("a", one, Outcome::kDone).has_value());
    EXPECT_EQ(world_.trial(0).state, TrialState::kComplete);
    EXPECT_EQ(world_.trial(0).value, 0.25);
    const Lease two = lease();
    world_.log(two.run_id, "accuracy", 1, 0.9);
    ASSERT_TRUE(finish("a", two, Outcome::kDone).has_value());
    EXPECT_EQ(world_.trial(1).state, TrialState::kFailed);
    EXPECT_THAT(world_.trial(1).reason,
                HasSubstr("metric 'loss' never arrived: the command succeeded, but reported only "
                          "'accuracy'"));
}

TEST_F(AgentsTest, ReportedMetricsCountBeforeTheEnd) {
    const Lease one = lease();
    Answer<ReportReply> reported;
    world_.studies().agents().report_metrics(
        "a",
        {.reports =
             {{.run_id = one.run_id, .attempt = 1, .metrics = {{"loss", 0.5, 1, 1}}, .params = {}},
              {.run_id = one.run_id,
               .attempt = 2,
               .metrics = {{"loss", 0.1, 1, 1}},
               .params = {}}}},
        reported.done());
    Answer<FinishReply> finished;
    world_.studies().agents().finish(
        "a", token(one), {.request_id = "f", .outcome = Outcome::kDone}, finished.done());
    const auto results = reported.get();
    ASSERT_TRUE(results.has_value());
    ASSERT_THAT(results->results, SizeIs(2));
    EXPECT_TRUE(results->results[0].ok);
    EXPECT_FALSE(results->results[1].ok);
    EXPECT_EQ(results->results[1].error_code, "RESOURCE_CONFLICT");
    ASSERT_TRUE(finished.get().has_value());
}

TEST_F(AgentsTest, ALostAgentsTrialRunsElsewhereAndItsLateWordChangesNothing) {
    const Lease old = lease("a");
    world_.log(old.run_id, "loss", 1, 0.5);
    world_.store().wait_for_observers();  // or the lease may end before the study hears of it
    world_.advance_ms(World::kTtl_ms - 1);
    EXPECT_EQ(world_.trial(0).state, TrialState::kRunning);
    world_.advance_ms(1);
    EXPECT_EQ(world_.trial(0).state, TrialState::kQueued);
    EXPECT_EQ(world_.trial(0).user_failures, 0);
    EXPECT_EQ(world_.trial(0).lost_attempts, 1);
    EXPECT_THAT(world_.trial(0).reason, HasSubstr("host-a has been silent for 40s"));

    const Lease fresh = lease("b");
    EXPECT_EQ(fresh.run_id, old.run_id);
    EXPECT_EQ(fresh.attempt, 2);
    EXPECT_EQ(fresh.params_json, old.params_json);
    EXPECT_EQ(fresh.seed, old.seed);
    EXPECT_EQ(fresh.checkpoint_dir, old.checkpoint_dir);

    const std::string journal = world_.journal();
    const auto late = finish("a", old, Outcome::kFailed);
    ASSERT_FALSE(late.has_value());
    EXPECT_EQ(late.error().code, Code::kResourceConflict);
    EXPECT_EQ(world_.journal(), journal);
    const auto heartbeat = world_.heartbeat("a", {token(old)});
    EXPECT_THAT(heartbeat->lost, ElementsAre(token(old)));
    ASSERT_TRUE(finish("b", fresh, Outcome::kDone).has_value());
    EXPECT_EQ(world_.trial(0).state, TrialState::kComplete);
}

TEST_F(AgentsTest, HeartbeatsKeepTheLease) {
    const Lease one = lease();
    for (int i = 0; i < 5; ++i) {
        world_.advance_ms(World::kTtl_ms / 2);
        ASSERT_TRUE(world_.heartbeat("a", {token(one)}).has_value());
    }
    EXPECT_EQ(world_.trial(0).state, TrialState::kRunning);
    EXPECT_EQ(world_.trial(0).attempt, 1);
}

TEST_F(AgentsTest, ARepeatedLeaseCallGivesTheSameAttempts) {
    const auto first = world_.lease("a", 2, "request");
    ASSERT_THAT(first->leases, SizeIs(2));
    const auto again = world_.lease("a", 2, "request");
    ASSERT_THAT(again->leases, SizeIs(2));
    EXPECT_EQ(again->leases[0].run_id, first->leases[0].run_id);
    EXPECT_EQ(world_.count(TrialState::kRunning), 2u);
}

TEST_F(AgentsTest, ARepeatedFinishIsAcknowledged) {
    const Lease one = lease();
    world_.log(one.run_id, "loss", 1, 0.5);
    ASSERT_TRUE(finish("a", one, Outcome::kPreempted, "end-1").has_value());
    ASSERT_TRUE(finish("a", one, Outcome::kPreempted, "end-1").has_value());
    EXPECT_EQ(world_.trial(0).state, TrialState::kQueued);
    EXPECT_EQ(finish("a", one, Outcome::kPreempted, "end-2").error().code, Code::kResourceConflict);
    const Lease two = lease("b");
    EXPECT_TRUE(finish("a", one, Outcome::kPreempted, "end-1").has_value())
        << "also after the next attempt began";
    EXPECT_EQ(world_.trial(0).attempt, 2);
    ASSERT_TRUE(finish("b", two, Outcome::kDone, "end-3").has_value());
}

TEST_F(AgentsTest, ARepeatedReportOfAnEndIsAcknowledged) {
    const Lease one = lease();
    AttemptReport report{.run_id = one.run_id, .attempt = 1, .metrics = {{"loss", 0.5, 1, 1}}};
    report.finish = FinishRequest{.request_id = "end"};
    for (int i = 0; i < 2; ++i) {
        Answer<ReportReply> answer;
        world_.studies().agents().report_metrics("a", {.reports = {report}}, answer.done());
        const auto reply = answer.get();
        EXPECT_TRUE(reply->results.at(0).ok) << reply->results[0].message;
        EXPECT_TRUE(reply->results[0].finished) << "its first answer may have been lost";
    }
    report.finish->request_id = "another end";
    Answer<ReportReply> answer;
    world_.studies().agents().report_metrics("a", {.reports = {report}}, answer.done());
    EXPECT_EQ(answer.get()->results.at(0).error_code, "RESOURCE_CONFLICT");
    EXPECT_EQ(world_.trial(0).state, TrialState::kComplete);
}

TEST_F(AgentsTest, AWaitingLeaseIsAnsweredWhenATrialComes) {
    EXPECT_THAT(world_.lease("a", 5)->leases, SizeIs(5));
    Answer<LeaseReply> waiting;
    world_.studies().agents().lease("b", {.request_id = "r", .free_slots = 1, .wait_ms = 30'000},
                                    waiting.done());
    EXPECT_FALSE(waiting.is_there());
    world_.advance_ms(World::kTtl_ms / 2);
    const std::string run_id = world_.trial(3).run_id;
    ASSERT_TRUE(world_.finish("a", {run_id, 1}, {.request_id = "f", .outcome = Outcome::kPreempted})
                    .has_value());
    const auto reply = waiting.get();
    ASSERT_THAT(reply->leases, SizeIs(1));
    EXPECT_EQ(reply->leases[0].number, 3);
    EXPECT_EQ(reply->leases[0].attempt, 2);
}

TEST_F(AgentsTest, AWaitingLeaseEndsWithItsTime) {
    EXPECT_THAT(world_.lease("a", 5)->leases, SizeIs(5));
    Answer<LeaseReply> waiting;
    world_.studies().agents().lease("b", {.request_id = "r", .free_slots = 1, .wait_ms = 1000},
                                    waiting.done());
    world_.advance_ms(999);
    EXPECT_FALSE(waiting.is_there());
    world_.advance_ms(1);
    EXPECT_THAT(waiting.get()->leases, IsEmpty());
}

TEST_F(AgentsTest, AMetricOfAnMlflowClientPrunesAtOnce) {
    ASSERT_TRUE(
        world_.create(R"("budget": {"trials": 5}, "pruner": {"type": "median", "startup": 2})")
            .has_value());
    complete_two();
    const Lease one = lease();
    Answer<HeartbeatReply> waiting;
    world_.studies().agents().heartbeat("a", {.wait_ms = 10'000, .running = {token(one)}},
                                        waiting.done());
    EXPECT_FALSE(waiting.is_there());
    world_.log(one.run_id, "loss", 1, 9);  // nobody moves the clock
    const auto reply = waiting.get();
    ASSERT_THAT(reply->directives, SizeIs(1));
    EXPECT_EQ(reply->directives[0].run_id, one.run_id);
    EXPECT_EQ(reply->directives[0].attempt, 1);
    EXPECT_EQ(reply->directives[0].action, Action::kPrune);
    EXPECT_EQ(reply->directives[0].reason, "pruned at step 1");

    Answer<HeartbeatReply> next;
    world_.studies().agents().heartbeat("a", {.wait_ms = 10'000, .running = {token(one)}},
                                        next.done());
    EXPECT_FALSE(next.is_there()) << "a directive that was told does not make the agent spin";
    world_.advance_ms(10'000);
    EXPECT_THAT(next.get()->directives, SizeIs(1)) << "but it is repeated";
    ASSERT_TRUE(finish("a", one, Outcome::kPruned).has_value());
    EXPECT_EQ(world_.trial(2).state, TrialState::kPruned);
    EXPECT_EQ(world_.trial(2).value, 9);
}

TEST_F(AgentsTest, StopNotifiesTheAgentsAndCancels) {
    const Lease one = lease();
    Answer<HeartbeatReply> waiting;
    world_.studies().agents().heartbeat("a", {.wait_ms = 10'000, .running = {token(one)}},
                                        waiting.done());
    ASSERT_TRUE(world_.change(Studies::Change::kStop).has_value());
    EXPECT_EQ(waiting.get()->directives.at(0).action, Action::kStop);
    ASSERT_TRUE(finish("a", one, Outcome::kCancelled).has_value());
    EXPECT_EQ(world_.trial(0).state, TrialState::kCancelled);
    EXPECT_THAT(world_.lease("b")->leases, IsEmpty());
}

TEST_F(AgentsTest, ALostAgentOfAStoppedStudyLeavesNothingQueued) {
    static_cast<void>(lease());
    ASSERT_TRUE(world_.change(Studies::Change::kStop).has_value());
    world_.advance_ms(World::kTtl_ms);
    EXPECT_EQ(world_.trial(0).state, TrialState::kCancelled);
}

TEST_F(AgentsTest, AnAgentThatStartsAnewIsAskedForWhatItLost) {
    const Lease kept = lease();
    const Lease gone = lease();
    const auto reply = world_.register_agent("a", {token(kept), {"unknown", 1}});
    ASSERT_TRUE(reply.has_value());
    EXPECT_THAT(reply->lost, ElementsAre(AttemptId{"unknown", 1}));
    EXPECT_EQ(world_.trial(static_cast<std::uint64_t>(kept.number)).state, TrialState::kRunning);
    EXPECT_EQ(world_.trial(static_cast<std::uint64_t>(gone.number)).state, TrialState::kQueued);
}

TEST_F(AgentsTest, ADepartedAgentGetsNothing) {
    EXPECT_THAT(world_.lease("b", 5)->leases, SizeIs(5));
    Answer<LeaseReply> waiting;
    world_.studies().agents().lease("a", {.request_id = "r", .free_slots = 1, .wait_ms = 30'000},
                                    waiting.done());
    ASSERT_TRUE(world_.register_agent("a", {}, 0).has_value());
    EXPECT_THAT(waiting.get()->leases, IsEmpty());
}

TEST_F(AgentsTest, UnknownAgentsAreToldToRegister) {
    for (const Error& error : {world_.lease("x").error(), world_.heartbeat("x", {}).error()}) {
        EXPECT_EQ(error.code, Code::kResourceDoesNotExist);
        EXPECT_THAT(error.message, HasSubstr("register again"));
    }
}

TEST_F(AgentsTest, TheStudysTimeEndsItsRunningTrials) {
    ASSERT_TRUE(world_.create(R"("budget": {"trials": 5, "time": "30s"})").has_value());
    const Lease one = lease();
    const Lease two = lease();
    ASSERT_TRUE(finish("a", two, Outcome::kPreempted).has_value());
    Answer<HeartbeatReply> waiting;
    world_.studies().agents().heartbeat("a", {.wait_ms = 30'000, .running = {token(one)}},
                                        waiting.done());
    world_.advance_ms(29'999);
    EXPECT_FALSE(waiting.is_there());
    world_.advance_ms(1);
    EXPECT_EQ(waiting.get()->directives.at(0).reason, "the time budget of 30s is over");
    EXPECT_EQ(world_.trial(1).state, TrialState::kCancelled) << "it was queued";
    EXPECT_EQ(world_.state(), StudyState::kRunning);
    ASSERT_TRUE(finish("a", one, Outcome::kCancelled).has_value());
    EXPECT_EQ(world_.state(), StudyState::kCompleted);
}

TEST_F(AgentsTest, DrainingAnswersEveryPoll) {
    const Lease one = lease();
    Answer<LeaseReply> leasing;
    Answer<HeartbeatReply> beating;
    EXPECT_THAT(world_.lease("b", 4)->leases, SizeIs(4));
    world_.studies().agents().lease("a", {.request_id = "r", .free_slots = 1, .wait_ms = 30'000},
                                    leasing.done());
    world_.studies().agents().heartbeat("a", {.wait_ms = 30'000, .running = {token(one)}},
                                        beating.done());
    world_.studies().drain();
    EXPECT_THAT(leasing.get()->leases, IsEmpty());
    EXPECT_TRUE(beating.get()->draining);
}

TEST_F(AgentsTest, StudiesShareTheAgents) {
    StudyConfig other = World::config(R"("budget": {"trials": 5})");
    other.study = "t";
    Answer<Studies::Created> created;
    world_.studies().create(other, created.done());
    ASSERT_TRUE(created.get().has_value());
    const auto reply = world_.lease("a", 4);
    ASSERT_THAT(reply->leases, SizeIs(4));
    int of_s = 0;
    for (const Lease& one : reply->leases) of_s += one.study == "s" ? 1 : 0;
    EXPECT_EQ(of_s, 2);
}

TEST_F(AgentsTest, AClientMayNotTellForAnAgent) {
    static_cast<void>(lease());
    const auto told = world_.tell(0, 1);
    ASSERT_FALSE(told.has_value());
    EXPECT_THAT(told.error().message, HasSubstr("running on the agent on host-a"));
}

}  // namespace
}  // namespace tune::tuner
