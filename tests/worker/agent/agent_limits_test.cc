// How an agent comes to its end by itself, and how it shares cores with another.

#include <nlohmann/json.hpp>

#include "tests/worker/agent/agent_fixture.h"
#include "worker/agent/devices/devices.h"
#include "worker/agent/devices/machine_locks.h"

namespace tune::worker {
namespace {

class AgentLimits : public AgentTest {
protected:
    /// Waits until the agent stops by itself and is done.
    void wait_for_own_end() {
        {
            std::unique_lock lock(mutex_);
            EXPECT_TRUE(
                changed_.wait_for(lock, std::chrono::seconds(60), [&] { return stopping_; }));
        }
        EXPECT_TRUE(agent_->wait(60'000));
    }
    Agent& start_limited(AgentOptions options) {
        Result<std::unique_ptr<Agent>> made = Agent::create(std::move(options));
        EXPECT_TRUE(made) << made.error().text();
        agent_ = std::move(*made);
        agent_->on_status([this](const AgentStatus& status) {
            const std::lock_guard lock(mutex_);
            running_ = status.running;
            stopping_ = status.stopping;
            changed_.notify_all();
        });
        EXPECT_TRUE(agent_->start());
        return *agent_;
    }
    bool stopping_ = false;  // guarded by mutex_
};

TEST_F(AgentLimits, AnIdleAgentEnds) {
    AgentOptions idle = options();
    idle.idle_exit_ms = 50;
    start_limited(idle);
    wait_for_own_end();
}

TEST_F(AgentLimits, ATrialKeepsItFromBeingIdle) {
    AgentOptions idle = options();
    idle.idle_exit_ms = 300;
    offer(shell("r1", gate("go") + "; sleep 0.6; echo 'tune: {\"loss\": 1}'"));
    start_limited(idle);
    open_gate("go");  // it has begun
    EXPECT_EQ(server_.wait_for_finish("r1").request.outcome, tuner::Outcome::kDone);
    wait_for_own_end();
    EXPECT_EQ(server_.metrics("r1"), "loss@0=1 ");
}

TEST_F(AgentLimits, RunningTrialsAreGivenBackBeforeTheTimeIsOver) {
    const auto begin = std::chrono::steady_clock::now();
    AgentOptions limited = options();
    limited.time_limit_ms = 4'000;
    tuner::Lease trial =
        shell("r1", "trap 'echo saved >$TUNE_CHECKPOINT_DIR/state; exit 0' TERM\n" + gate("go") +
                        "; while :; do sleep 0.02; done");
    trial.grace_ms = 1'000;
    offer(trial);
    start_limited(limited);
    open_gate("go");
    const FakeCoordinator::Finish finish = server_.wait_for_finish("r1");
    EXPECT_EQ(finish.request.outcome, tuner::Outcome::kPreempted);
    EXPECT_EQ(finish.request.reason, "the agent's time limit is reached");
    EXPECT_EQ(state_.read("state/checkpoints/r1/state"), "saved\n");
    wait_for_own_end();
    const auto took = std::chrono::steady_clock::now() - begin;
    EXPECT_GE(took, std::chrono::milliseconds(2'500)) << "the limit less grace and delivery";
}

TEST_F(AgentLimits, NoTrialIsTakenThatWouldTakeTooLong) {
    AgentOptions limited = options();
    limited.slots = 1;
    limited.time_limit_ms = 3'000;
    tuner::Lease trial = shell("r1", "sleep 1.6");
    trial.grace_ms = 200;
    offer(trial);
    start_limited(limited);
    EXPECT_EQ(server_.wait_for_finish("r1").request.outcome, tuner::Outcome::kDone);
    // 1.4 s at most are left: too short for a second one.
    wait_for_own_end();
    offer(shell("r2", "true"));
    EXPECT_EQ(server_.finish_calls("r2"), 0);
}

TEST_F(AgentLimits, ACoreOfAnotherAgentIsWaitedFor) {
    const int core = allowed_cores().front();
    std::optional<UniqueFd> other = lock_on_machine(core_lock_name(core)).value();
    AgentOptions one = options();
    one.cpus = 1;
    tuner::Lease trial = shell("r1", "true");
    trial.cpus_per_trial = 1;
    offer(trial);
    // If an agent of somebody else has the core just now, it is that one which is waited for.
    start_limited(one);
    offer(shell("r2", "true"));  // shares cores: nothing to wait for
    EXPECT_EQ(server_.wait_for_finish("r2").request.outcome, tuner::Outcome::kDone);
    EXPECT_EQ(server_.finish_calls("r1"), 0);
    other.reset();
    EXPECT_EQ(server_.wait_for_finish("r1").request.outcome, tuner::Outcome::kDone);
    drain();
}

TEST_F(AgentLimits, LogRulesDecideAboutAFailure) {
    AgentOptions ruled = options();
    ruled.log_rules = {{"broken pipe", tuner::LogAction::kRetry}};
    start_limited(ruled);
    tuner::Lease final = shell("r1", "echo 'no such column'; exit 1");
    final.log_rules = {{"no such column", tuner::LogAction::kNoRetry}};
    offer(final);
    EXPECT_EQ(server_.wait_for_finish("r1").request.outcome, tuner::Outcome::kBadConfig);
    EXPECT_EQ(server_.wait_for_finish("r1").request.reason,
              "a log rule (no_retry) matched: no such column");
    offer(shell("r2", "echo 'a broken pipe'; exit 1"));
    EXPECT_EQ(server_.wait_for_finish("r2").request.outcome, tuner::Outcome::kLost);
    offer(shell("r3", "echo 'all is well'; exit 1"));
    EXPECT_EQ(server_.wait_for_finish("r3").request.outcome, tuner::Outcome::kFailed);
    drain();
}

TEST_F(AgentLimits, ARuleMayTakeTheMachineOut) {
    AgentOptions ruled = options();
    ruled.log_rules = {{"disk I/O error", tuner::LogAction::kExcludeHost}};
    Agent& agent = start_limited(ruled);
    offer(shell("r1", "echo 'disk I/O error'; exit 1"));
    EXPECT_EQ(server_.wait_for_finish("r1").request.outcome, tuner::Outcome::kLost);
    EXPECT_TRUE(server_.wait_until([&] { return server_.registrations.back().slots == 0; }));
    ASSERT_EQ(agent.status().excluded.size(), 1u);
    EXPECT_EQ(agent.status().excluded.front(),
              "this machine: the log of trial 0 of study 'study' says: disk I/O error");
    EXPECT_EQ(agent.status().slots, 0);
    drain();
}

TEST_F(AgentLimits, ARuleThatIsNoPatternIsRefused) {
    AgentOptions ruled = options();
    ruled.log_rules = {{"(", tuner::LogAction::kRetry}};
    EXPECT_EQ(Agent::create(ruled).error().code, Code::kInvalidParameterValue);
}

TEST_F(AgentLimits, ARunLearnsWhatItWasMadeWith) {
    AgentOptions captured = options();
    captured.capture_environment = true;
    start_limited(captured);
    const std::string folder = (state_.path() / "code").string();
    std::filesystem::create_directory(folder);
    offer(
        shell("r0", "cd '" + folder +
                        "' && git init -q . && git config user.email a@b && "
                        "git config user.name n && echo one >f && git add f && git commit -qm m && "
                        "echo two >>f"));
    EXPECT_EQ(server_.wait_for_finish("r0").request.outcome, tuner::Outcome::kDone);
    tuner::Lease trial = shell("r1", "true");
    trial.working_dir = folder;
    offer(trial);
    EXPECT_EQ(server_.wait_for_finish("r1").request.outcome, tuner::Outcome::kDone);
    EXPECT_TRUE(server_.wait_until([&] {
        auto& tags = server_.tags["r1"];
        return tags["mlflow.source.git.commit"].size() == 40 &&
               tags["mlflow.source.git.dirty"] == "true" &&
               tags["tune.command"] == R"(["sh","-c","true"])";
    })) << "all tags come before the end";
    const std::string diff =
        server_.wait_for_artifact("7/r1/artifacts/environment/git.diff", "+two");
    EXPECT_NE(diff.find("+two"), std::string::npos);
    drain();
}

}  // namespace
}  // namespace tune::worker
