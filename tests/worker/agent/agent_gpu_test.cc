// The whole agent over a fake driver library (devices/fake_nvml.cc): who gets which GPU, and what
// happens when one fails.

#include <nlohmann/json.hpp>

#include "tests/worker/agent/agent_fixture.h"
#include "tests/worker/agent/devices/fake_gpus.h"

namespace tune::worker {
namespace {

constexpr const char* kPowers =
    " bytes=80000000000 used=2000000000 util=37 power=350000 limit=700000";

class AgentGpu : public AgentTest {
protected:
    AgentGpu() : gpus_(machine()) {}

    /// Names that no other agent of this machine locks.
    static std::string uuid(char name) {
        return std::string("GPU-") + name + "-" + std::to_string(getpid());
    }
    /// Two GPUs; `a` and `b` are added to their lines, `more` follows.
    static std::string machine(const std::string& a = "energy=1000", const std::string& b = "",
                               const std::string& more = "") {
        return "driver 575\ngpu " + uuid('a') + kPowers + " " + a + "\ngpu " + uuid('b') + kPowers +
               " " + b + "\n" + more;
    }
    AgentOptions gpu_options() {
        AgentOptions with = options();
        with.use_gpus = true;
        with.gpu_library = FAKE_NVML_LIBRARY;
        with.gpu_period_ms = 20;
        with.slots = 0;
        return with;
    }
    std::string waiting(const std::string& name) {
        return "echo on $CUDA_VISIBLE_DEVICES; " + gate(name);
    }

    FakeGpus gpus_;
};

TEST_F(AgentGpu, EachTrialHasOneOfItsOwn) {
    Agent& agent = start(gpu_options());
    EXPECT_EQ(agent.status().slots, 2);
    offer(shell("r1", waiting("go1")));
    offer(shell("r2", waiting("go2")));
    open_gate("go1");
    open_gate("go2");
    EXPECT_EQ(artifact("r1", "stdout.log", "on"), "on " + uuid('a') + "\n");
    EXPECT_EQ(artifact("r2", "stdout.log", "on"), "on " + uuid('b') + "\n");
    drain();
}

TEST_F(AgentGpu, TwoAgentsHaveDifferentOnes) {
    AgentOptions one = gpu_options();
    one.gpus_max = 1;
    start(one);
    AgentOptions other = gpu_options();
    other.state_dir = state_.path() / "other";
    const auto second = Agent::create(other).value();
    EXPECT_EQ(second->status().slots, 1);
    offer(shell("r1", "echo on $CUDA_VISIBLE_DEVICES"));
    EXPECT_EQ(artifact("r1", "stdout.log", "on"), "on " + uuid('a') + "\n");
    EXPECT_TRUE(second->start());
    drain();  // the first one takes nothing any more
    offer(shell("r2", "echo on $CUDA_VISIBLE_DEVICES"));
    EXPECT_EQ(artifact("r2", "stdout.log", "on"), "on " + uuid('b') + "\n");
    second->stop(StopMode::kDrain);
    EXPECT_TRUE(second->wait(60'000));
}

TEST_F(AgentGpu, ATrialKeepsItsGpuWhenTheAgentDies) {
    offer(shell("r1", "echo 'tune: {\"loss\": 1}'; " + gate("go")));
    start(gpu_options());
    server_.wait_for_metrics("r1", 1);
    agent_->stop(StopMode::kDetach);
    EXPECT_TRUE(agent_->wait());
    agent_.reset();
    server_.forget_agent();  // what this one asked for last is nobody's any more
    AgentOptions other = gpu_options();
    other.state_dir = state_.path() / "other";
    const auto stranger = Agent::create(other).value();
    EXPECT_EQ(stranger->status().slots, 1) << "the trial of the first agent has the other GPU";
    AgentOptions again = gpu_options();
    again.gpus_max = 1;
    start(again);  // the one it adopts
    open_gate("go");
    EXPECT_EQ(server_.wait_for_finish("r1").request.outcome, tuner::Outcome::kDone);
    offer(shell("r2", "echo on $CUDA_VISIBLE_DEVICES"));
    EXPECT_EQ(artifact("r2", "stdout.log", "on"), "on " + uuid('a') + "\n");
    drain();
}

TEST_F(AgentGpu, ALostGpuEndsItsTrialAndIsLeftOut) {
    Agent& agent = start(gpu_options());
    offer(shell("r1",
                "echo 'tune: {\"loss\": 1}'; trap 'exit 0' TERM; while :; do sleep 0.02; done"));
    offer(shell("r2", "echo 'tune: {\"loss\": 2}'; " + gate("go")));
    server_.wait_for_metrics("r1", 1);
    server_.wait_for_metrics("r2", 1);
    gpus_.set(machine("lost=1"));
    const FakeCoordinator::Finish finish = server_.wait_for_finish("r1");
    EXPECT_EQ(finish.request.outcome, tuner::Outcome::kLost);
    EXPECT_EQ(
        finish.request.reason,
        uuid('a') + ": the GPU is lost: it has fallen off the bus or cannot be reached any more");
    EXPECT_TRUE(server_.wait_until([&] {
        const tuner::RegisterRequest& last = server_.registrations.back();
        return last.slots == 1 && last.gpus == std::vector<std::string>{uuid('b')} &&
               last.excluded.size() == 1 && last.excluded.front().starts_with(uuid('a') + ": ");
    }));
    EXPECT_EQ(agent.status().slots, 1);
    ASSERT_EQ(agent.status().excluded.size(), 1u);
    EXPECT_TRUE(agent.status().excluded.front().starts_with(uuid('a') + ": the GPU is lost"));
    // The neighbour goes on, and the next trial has its GPU after it.
    open_gate("go");
    EXPECT_EQ(server_.wait_for_finish("r2").request.outcome, tuner::Outcome::kDone);
    offer(shell("r3", "echo on $CUDA_VISIBLE_DEVICES"));
    EXPECT_EQ(artifact("r3", "stdout.log", "on"), "on " + uuid('b') + "\n");
    drain();
}

TEST_F(AgentGpu, ATrialThatDiesOfItsGpuIsNotToBlame) {
    AgentOptions rarely = gpu_options();
    rarely.gpu_period_ms = 3'600'000;  // only its end makes the agent look
    start(rarely);
    offer(shell("r1", "echo 'tune: {\"loss\": 1}'; " + gate("go") + "; exit 1"));
    server_.wait_for_metrics("r1", 1);
    gpus_.set(machine("reset=1"));
    open_gate("go");
    const FakeCoordinator::Finish finish = server_.wait_for_finish("r1");
    EXPECT_EQ(finish.request.outcome, tuner::Outcome::kLost);
    EXPECT_EQ(finish.request.reason,
              uuid('a') + ": the GPU must be reset before it can be used again");
    drain();
}

TEST_F(AgentGpu, AnXidEndsTheTrial) {
    AgentOptions rarely = gpu_options();
    rarely.gpu_period_ms = 3'600'000;
    start(rarely);
    offer(shell("r1", "echo 'tune: {\"loss\": 1}'; sleep 600"));
    server_.wait_for_metrics("r1", 1);
    gpus_.set(machine("", "", "xid " + uuid('a') + " 79\n"));
    EXPECT_EQ(server_.wait_for_finish("r1").request.outcome, tuner::Outcome::kLost);
    drain();
}

TEST_F(AgentGpu, ATrialDeafToSigtermIsKilled) {
    start(gpu_options());
    tuner::Lease deaf = shell("r1",
                              "trap '' TERM; echo 'tune: {\"loss\": 1}'; (setsid sleep 600 &); "
                              "while :; do sleep 0.02; done");
    deaf.grace_ms = 100;
    offer(deaf);
    server_.wait_for_metrics("r1", 1);
    gpus_.set(machine("lost=1"));
    EXPECT_EQ(server_.wait_for_finish("r1").request.outcome, tuner::Outcome::kLost);
    EXPECT_NE(artifact("r1", "agent.log", "were killed"), "");
    drain();
}

TEST_F(AgentGpu, ForeignProcessesAreAvoidedIfAsked) {
    AgentOptions careful = gpu_options();
    careful.foreign_use = ForeignUse::kAvoid;
    careful.gpus_max = 1;
    gpus_.set(machine("", "", "process " + uuid('a') + " 1 1000000\n"));
    start(careful);
    tuner::Lease trial = shell("r1", "cat $FAKE_NVML");
    trial.gpus_per_trial = 1;
    offer(trial);
    server_.wait_for_leases(1);
    gpus_.set(machine());
    EXPECT_EQ(server_.wait_for_finish("r1").request.outcome, tuner::Outcome::kDone);
    EXPECT_EQ(artifact("r1", "stdout.log", "driver 575").find("process"), std::string::npos);
    drain();
}

TEST_F(AgentGpu, JoulesOfATrialAreLogged) {
    start(gpu_options());
    offer(shell("r1", "echo 'tune: {\"loss\": 1}'; " + gate("go")));
    server_.wait_for_metrics("r1", 1);
    const std::filesystem::path folder = state_.path() / "state" / "attempts" / "r1-1";
    while (!std::filesystem::exists(folder / "energy.json")) usleep(1000);
    gpus_.set(machine("energy=43500"));
    open_gate("go");
    EXPECT_EQ(server_.wait_for_finish("r1").request.outcome, tuner::Outcome::kDone);
    EXPECT_EQ(server_.metrics("r1"), "loss@0=1 tune.energy_joules@1=42.5 ");
    drain();
}

TEST_F(AgentGpu, MetricsAreOfItsOwnGpuOnly) {
    AgentOptions sampled = gpu_options();
    sampled.system_metrics_period_ms = 100;
    start(sampled);
    gpus_.set(machine("util=11", "util=22"));
    offer(shell("r1", gate("go1")));
    offer(shell("r2", gate("go2")));
    const auto has = [&](const std::string& run, double value) {
        for (const tuner::ReportedMetric& metric : server_.reported(run))
            if (metric.key == "system/gpu_0_utilization_percentage" && metric.value == value)
                return true;
        return false;
    };
    while (!has("r1", 11) || !has("r2", 22))
        server_.wait_for_metrics("r1", server_.reported("r1").size() + 1);
    for (const std::string run : {"r1", "r2"})
        for (const tuner::ReportedMetric& metric : server_.reported(run))
            EXPECT_FALSE(metric.key.starts_with("system/gpu_1")) << metric.key;
    open_gate("go1");
    open_gate("go2");
    drain();
}

/// The memory of its own processes, not that of others on the device, and of short trials too.
TEST_F(AgentGpu, ThePeakOfGpuMemoryIsThatOfItsProcesses) {
    AgentOptions rarely = gpu_options();
    rarely.gpu_period_ms = 3'600'000;
    rarely.gpus_max = 1;
    start(rarely);
    offer(shell("r1", "(echo \"tune: {\\\"pid\\\": $BASHPID}\"; " + gate("go") + ") & wait"));
    server_.wait_for_metrics("r1", 1);
    const int pid = static_cast<int>(server_.reported("r1").front().value);
    const std::string foreign = "process " + uuid('a') + " 1 9000000000\n";
    const auto own = [&](const std::string& bytes) {
        return foreign + "process " + uuid('a') + " " + std::to_string(pid) + " " + bytes + "\n";
    };
    for (const std::string bytes : {"5000000000", "3000000000"}) {
        gpus_.set(machine("", "", own(bytes)));
        // The second look from here on comes after what the first one saw has been noted.
        const std::uintmax_t before = gpus_.looks();
        while (gpus_.looks() < before + 3) usleep(1'000);
    }
    open_gate("go");
    EXPECT_EQ(server_.wait_for_finish("r1").request.peak_gpu_memory_bytes, 5'000'000'000);
    drain();
}

/// As in a container, where the driver's numbers of processes are others.
TEST_F(AgentGpu, WithoutItsProcessesThePeakIsThatOfItsWholeGpu) {
    AgentOptions one = gpu_options();
    one.gpus_max = 1;
    gpus_.set(machine("", "", "process " + uuid('a') + " 999999999 9000000000\n"));
    start(one);
    offer(shell("r1", "echo 'tune: {\"loss\": 1}'; " + gate("go")));
    server_.wait_for_metrics("r1", 1);
    const std::uintmax_t before = gpus_.looks();
    while (gpus_.looks() < before + 3) usleep(1'000);
    open_gate("go");
    EXPECT_EQ(server_.wait_for_finish("r1").request.peak_gpu_memory_bytes, 2'000'000'000);
    drain();
}

TEST_F(AgentGpu, ATrialMaySayItsPeakItself) {
    start(gpu_options());
    offer(shell("r1",
                "echo 'tune: {\"gpu_memory_peak_bytes\": 7000000000}'; "
                "echo 'tune: {\"gpu_memory_peak_bytes\": 6000000000}'"));
    EXPECT_EQ(server_.wait_for_finish("r1").request.peak_gpu_memory_bytes, 7'000'000'000);
    drain();
}

TEST_F(AgentGpu, ALogThatSaysEccLeavesTheGpuOut) {
    Agent& agent = start(gpu_options());
    offer(shell("r1", "echo 'CUDA error: uncorrectable ECC error encountered' >&2; exit 1"));
    const FakeCoordinator::Finish finish = server_.wait_for_finish("r1");
    EXPECT_EQ(finish.request.outcome, tuner::Outcome::kLost);
    EXPECT_EQ(
        finish.request.reason,
        "a log rule (exclude_device) matched: CUDA error: uncorrectable ECC error encountered");
    EXPECT_TRUE(server_.wait_until([&] { return server_.registrations.back().slots == 1; }));
    EXPECT_EQ(agent.status().excluded.size(), 1u);
    offer(shell("r2", "echo on $CUDA_VISIBLE_DEVICES"));
    EXPECT_EQ(artifact("r2", "stdout.log", "on"), "on " + uuid('b') + "\n");
    drain();
}

TEST_F(AgentGpu, AProgramThatGoesOnIsNotJudgedByItsLog) {
    Agent& agent = start(gpu_options());
    offer(shell("r1", "echo 'GPU is lost, said the book'"));
    EXPECT_EQ(server_.wait_for_finish("r1").request.outcome, tuner::Outcome::kDone);
    EXPECT_TRUE(agent.status().excluded.empty());
    drain();
}

}  // namespace
}  // namespace tune::worker
