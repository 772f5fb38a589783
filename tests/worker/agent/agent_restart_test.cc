// Agents and servers that stop, are killed, stay away and come again.

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "tests/worker/agent/agent_fixture.h"

namespace tune::worker {
namespace {

using tuner::Outcome;

TEST_F(AgentTest, TrialsContinueWhileTheServerIsAway) {
    start();
    offer(shell("r1", "echo 'tune: {\"a\": 1}'; " + gate("go") +
                          "; for i in 2 3 4; do echo \"tune: {\\\"a\\\": $i}\"; done; echo end"));
    server_.wait_for_metrics("r1", 1);
    server_.go_away();
    open_gate("go");
    wait_until_nothing_runs();
    server_.come_back();
    EXPECT_EQ(server_.wait_for_finish("r1").request.outcome, Outcome::kDone);
    EXPECT_EQ(server_.metrics("r1"), "a@0=1 a@1=2 a@2=3 a@3=4 ");
    EXPECT_NE(artifact("r1", "stdout.log", "end").find("tune:"), std::string::npos);
    drain();
    EXPECT_FALSE(left_behind());
}

TEST_F(AgentTest, StopsItsTrialsWhenTheServerStaysAway) {
    server_.lease_ttl_ms = 1'000;
    AgentOptions given = options();
    given.away_grace_ms = 0;
    start(given);
    offer(shell("r1", "echo 'tune: {\"a\": 1}'; sleep 1000"));
    server_.wait_for_metrics("r1", 1);
    server_.go_away();
    wait_until_nothing_runs();
    server_.come_back();
    const tuner::FinishRequest finish = server_.wait_for_finish("r1").request;
    EXPECT_EQ(finish.outcome, Outcome::kPreempted);
    EXPECT_NE(finish.reason.find("has not responded"), std::string::npos);
}

TEST_F(AgentTest, ALaterAgentAdoptsRunningTrials) {
    start();
    const std::string id = agent_->id();
    offer(shell("r1",
                "echo 'tune: {\"a\": 1}'; " + gate("go") + "; echo 'tune: {\"a\": 2}'; exit 10"));
    server_.wait_for_metrics("r1", 1);
    agent_->stop(StopMode::kDetach);
    EXPECT_TRUE(agent_->wait());
    agent_.reset();
    EXPECT_EQ(server_.finish_calls("r1"), 0);
    start();
    EXPECT_EQ(agent_->id(), id);
    server_.wait_until([&] { return server_.registrations.size() == 2; });
    ASSERT_EQ(server_.registrations[1].running.size(), 1u);
    open_gate("go");
    EXPECT_EQ(server_.wait_for_finish("r1").request.outcome, Outcome::kPruned);
    EXPECT_EQ(server_.metrics("r1"), "a@0=1 a@1=2 ");
    drain();
    EXPECT_FALSE(left_behind());
}

TEST_F(AgentTest, ALaterAgentReportsTrialsThatEndedMeanwhile) {
    start();
    offer(shell("r1", "echo 'tune: {\"a\": 1}'; " + gate("go") + "; echo 'tune: {\"a\": 2}'"));
    server_.wait_for_metrics("r1", 1);
    const Process running = supervisor("r1-1");
    agent_->stop(StopMode::kDetach);
    agent_->wait();
    agent_.reset();
    open_gate("go");
    wait_for_end(running);
    start();
    EXPECT_EQ(server_.wait_for_finish("r1").request.outcome, Outcome::kDone);
    EXPECT_EQ(server_.metrics("r1"), "a@0=1 a@1=2 ");
}

TEST_F(AgentTest, ALaterAgentOfAnotherServerAddressRunsThemAgain) {
    start();
    offer(shell("r1", "echo 'tune: {\"a\": 1}'; sleep 1000"));
    server_.wait_for_metrics("r1", 1);
    agent_->stop(StopMode::kDetach);
    agent_->wait();
    agent_.reset();
    AgentOptions moved = options();
    moved.server_url = "http://localhost:" + server_.url().substr(server_.url().rfind(':') + 1);
    start(moved);
    const tuner::FinishRequest finish = server_.wait_for_finish("r1").request;
    EXPECT_EQ(finish.outcome, Outcome::kPreempted);
    EXPECT_NE(finish.reason.find("address changed"), std::string::npos);
}

TEST_F(AgentTest, AKilledSupervisorIsALostAttempt) {
    start();
    offer(shell("r1", "setsid sleep 1000 & echo 'tune: {\"a\": 1}'; wait"));
    server_.wait_for_metrics("r1", 1);
    signal_process(supervisor("r1-1"), SIGKILL);
    EXPECT_EQ(server_.wait_for_finish("r1").request.outcome, Outcome::kLost);
    EXPECT_TRUE(find_marked_processes("r1", 1).empty());
}

TEST_F(AgentTest, StopPreemptsWhatRuns) {
    start();
    offer(shell("r1", "echo 'tune: {\"a\": 1}'; sleep 1000"));
    server_.wait_for_metrics("r1", 1);
    agent_->stop(StopMode::kStop);
    EXPECT_TRUE(agent_->wait());
    const tuner::FinishRequest finish = server_.wait_for_finish("r1").request;
    EXPECT_EQ(finish.outcome, Outcome::kPreempted);
    EXPECT_EQ(finish.reason, "the agent was stopped");
    // The farewell: no slots, nothing running.
    EXPECT_EQ(server_.registrations.back().slots, 0);
    EXPECT_TRUE(server_.registrations.back().running.empty());
}

TEST_F(AgentTest, ASecondStopKills) {
    start();
    offer(shell("r1", "trap '' TERM; echo 'tune: {\"a\": 1}'; while true; do sleep 1000; done"));
    server_.wait_for_metrics("r1", 1);
    agent_->stop(StopMode::kStop);
    agent_->stop(StopMode::kKill);
    EXPECT_TRUE(agent_->wait());
    EXPECT_EQ(server_.wait_for_finish("r1").request.outcome, Outcome::kPreempted);
}

TEST_F(AgentTest, DrainLetsTheRunningOnesEnd) {
    start();
    offer(shell("r1", "echo 'tune: {\"a\": 1}'; " + gate("go")));
    server_.wait_for_metrics("r1", 1);
    agent_->stop(StopMode::kDrain);
    open_gate("go");
    EXPECT_TRUE(agent_->wait());
    EXPECT_EQ(server_.wait_for_finish("r1").request.outcome, Outcome::kDone);
}

TEST_F(AgentTest, GivesUpDeliveringToAServerThatIsGoneAndALaterAgentDelivers) {
    start();
    offer(shell("r1", "echo 'tune: {\"a\": 1}'; " + gate("go") + "; echo 'tune: {\"a\": 2}'"));
    server_.wait_for_metrics("r1", 1);
    server_.go_away();
    open_gate("go");
    agent_->stop(StopMode::kDrain);
    EXPECT_FALSE(agent_->wait(100));
    agent_.reset();
    EXPECT_TRUE(left_behind());
    server_.come_back();
    start();
    EXPECT_EQ(server_.wait_for_finish("r1").request.outcome, Outcome::kDone);
    EXPECT_EQ(server_.metrics("r1"), "a@0=1 a@1=2 ");
}

/// kill -9 of the whole process of the agent, between any two of its steps: each trial ends exactly
/// once, with each metric exactly once.
TEST_F(AgentTest, SurvivesBeingKilledAtAnyMoment) {
    for (int i = 0; i < 30; ++i)
        offer(shell("r" + std::to_string(i),
                    "for i in 1 2 3 4 5; do echo \"tune: {\\\"a\\\": $i}\"; sleep 0.01; done"));
    AgentOptions given = options();
    given.slots = 4;
    bool all_done = false;
    for (int round = 0; round < 200 && !all_done; ++round) {
        std::string program = AGENT_PROGRAM;
        std::string url = given.server_url;
        std::string state_dir = given.state_dir.string();
        char* argv[] = {program.data(), url.data(), state_dir.data(), nullptr};
        pid_t agent = -1;
        ASSERT_EQ(posix_spawn(&agent, AGENT_PROGRAM, nullptr, nullptr, argv, environ), 0);
        usleep(static_cast<useconds_t>(20'000 + round * 7'919 % 60'000));
        kill(agent, SIGKILL);
        waitpid(agent, nullptr, 0);
        all_done = true;
        for (int i = 0; i < 30; ++i)
            all_done = all_done && server_.finish_calls("r" + std::to_string(i)) > 0;
    }
    start(given);
    for (int i = 0; i < 30; ++i) {
        const std::string run = "r" + std::to_string(i);
        EXPECT_EQ(server_.wait_for_finish(run).request.outcome, Outcome::kDone);
        EXPECT_EQ(server_.metrics(run), "a@0=1 a@1=2 a@2=3 a@3=4 a@4=5 ") << run;
    }
}

}  // namespace
}  // namespace tune::worker
