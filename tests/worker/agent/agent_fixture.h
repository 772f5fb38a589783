#pragma once
// The whole agent with real processes and the real HTTP client and server; only the decisions of
// the server are scripted.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "tests/worker/agent/fake_coordinator.h"
#include "tests/worker/agent/scratch.h"
#include "worker/agent/agent.h"
#include "worker/agent/attempts/attempt_files.h"
#include "worker/agent/supervisor/launcher.h"

namespace tune::worker {

class AgentTest : public testing::Test {
protected:
    AgentTest() { set_log_level(LogLevel::kError); }

    AgentOptions options() {
        AgentOptions options;
        options.server_url = server_.url();
        options.state_dir = state_.path() / "state";
        options.slots = 2;
        options.use_gpus = false;
        options.log_upload_period_ms = 50;
        options.capture_environment = false;  // it has tests of its own
        return options;
    }
    Agent& start(AgentOptions options) {
        Result<std::unique_ptr<Agent>> made = Agent::create(std::move(options));
        EXPECT_TRUE(made) << made.error().text();
        agent_ = std::move(*made);
        agent_->on_status([this](const AgentStatus& status) {
            const std::lock_guard lock(mutex_);
            running_ = status.running;
            changed_.notify_all();
        });
        EXPECT_TRUE(agent_->start());
        return *agent_;
    }
    Agent& start() { return start(options()); }

    tuner::Lease lease(const std::string& run_id, std::vector<std::string> command) {
        tuner::Lease lease;
        lease.study = "study";
        lease.run_id = run_id;
        lease.experiment_id = "7";
        lease.command = std::move(command);
        lease.metric = "loss";
        lease.grace_ms = 20'000;
        return lease;
    }
    tuner::Lease shell(const std::string& run_id, const std::string& script) {
        return lease(run_id, {"sh", "-c", script});
    }
    void offer(tuner::Lease lease) { server_.offer(std::move(lease)); }

    /// A file whose appearance the trial's script waits for: `await go` in the script.
    std::string gate(const std::string& name) {
        const std::string path = (state_.path() / name).string();
        EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
        return "read line <" + path;
    }
    void open_gate(const std::string& name) {
        const UniqueFd fifo(open((state_.path() / name).c_str(), O_WRONLY | O_CLOEXEC));
        EXPECT_EQ(write(fifo.get(), "\n", 1), 1);
    }
    /// Waits for a log that holds `part`: what is uploaded while a trial runs may be its beginning.
    std::string artifact(const std::string& run_id, const std::string& name,
                         const std::string& part) {
        return server_.wait_for_artifact("7/" + run_id + "/artifacts/logs/" + name, part);
    }
    void wait_until_nothing_runs() {
        std::unique_lock lock(mutex_);
        EXPECT_TRUE(
            changed_.wait_for(lock, std::chrono::seconds(60), [&] { return running_ == 0; }));
    }
    /// The supervisor of an attempt, from its folder ("r1-1").
    Process supervisor(const std::string& folder) {
        const AttemptFiles files(state_.path() / "state" / "attempts" / folder);
        const Owner owner = files.read_or_take_ownership().value();
        return find_process(owner.pid, owner.start_time).value();
    }
    static void wait_for_end(const Process& process) {
        pollfd ready{process.pidfd.get(), POLLIN, 0};
        EXPECT_EQ(poll(&ready, 1, 60'000), 1);
    }
    [[nodiscard]] bool left_behind() const {
        return !std::filesystem::is_empty(state_.path() / "state" / "attempts");
    }
    void drain() {
        agent_->stop(StopMode::kDrain);
        EXPECT_TRUE(agent_->wait(60'000));
    }

    Scratch state_;
    FakeCoordinator server_;
    std::mutex mutex_;
    std::condition_variable changed_;
    int running_ = 0;  // guarded by mutex_
    std::unique_ptr<Agent> agent_;
};

}  // namespace tune::worker
