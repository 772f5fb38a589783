// Real supervisors and trials: when the agent may say that nothing of an attempt runs any more.

#include "worker/agent/supervisor/process_tree.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "tests/worker/agent/scratch.h"
#include "worker/agent/attempts/environment.h"

namespace tune::worker {
namespace {

class ProcessTreeTest : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_EQ(mkfifo((scratch_.path() / "wake").c_str(), 0600), 0);
        ASSERT_EQ(mkfifo(gate().c_str(), 0600), 0);
        std::filesystem::create_directory(files_.directory());
        tree_ = std::make_unique<ProcessTree>(
            *loop_, files_,
            ProcessTreeEvents{.find_survivors =
                                  [this] {
                                      std::vector<Process> found = find_processes_with(mark());
                                      survivors_ = found.size();
                                      return found;
                                  },
                              .supervisor_ended = [this] { events_ += "supervisor "; },
                              .gone =
                                  [this](std::optional<ExitRecord> exit) {
                                      events_ += "gone";
                                      exit_ = exit;
                                      tree_.reset();  // as an attempt that is forgotten
                                      loop_->quit();
                                  }});
    }
    [[nodiscard]] std::string gate() const { return scratch_.path() / "gate"; }
    [[nodiscard]] std::string mark() const { return "TUNE_TEST_TREE=" + scratch_.path().string(); }

    void start(const std::string& script) {
        LaunchSpec spec;
        spec.directory = files_.directory();
        spec.wake_fifo = scratch_.path() / "wake";
        spec.serial = 1;
        spec.grace_ms = 20'000;
        spec.command = {"sh", "-c", script};
        spec.environment = own_environment();
        spec.environment.push_back(mark());
        Result<Process> process = launcher_.start(spec);
        ASSERT_TRUE(process) << process.error().text();
        ASSERT_TRUE(tree_->watch(std::move(*process)));
    }
    /// Waits until the trial has come to where it opens the gate.
    void await_trial() const { std::ifstream gate_file(gate()); }

    Scratch scratch_;
    const AttemptFiles files_{scratch_.path() / "attempt"};
    Launcher launcher_ = Launcher::create().value();
    std::unique_ptr<Loop> loop_ = Loop::create().value();
    std::unique_ptr<ProcessTree> tree_;
    std::string events_;
    std::optional<ExitRecord> exit_;
    std::size_t survivors_ = 0;  // at the last look
};

TEST_F(ProcessTreeTest, IsGoneWithItsSupervisor) {
    start("exit 7");
    loop_->run();
    EXPECT_EQ(events_, "supervisor gone");
    ASSERT_TRUE(exit_);
    EXPECT_EQ(exit_->exit_code, 7);
}

TEST_F(ProcessTreeTest, EndsAtASignal) {
    start("echo >'" + gate() + "'; sleep 600");
    await_trial();
    tree_->signal(SIGTERM);
    loop_->run();
    ASSERT_TRUE(exit_);
    EXPECT_TRUE(exit_->stopped);
}

TEST_F(ProcessTreeTest, KillsWhatAKilledSupervisorLeaves) {
    start("echo >'" + gate() + "'; sleep 600 & wait");
    await_trial();
    tree_->signal(SIGKILL);
    loop_->run();
    EXPECT_EQ(events_, "supervisor gone");
    EXPECT_FALSE(exit_) << "nobody wrote how it ended";
    EXPECT_EQ(survivors_, 0u);
    EXPECT_TRUE(find_processes_with(mark()).empty());
}

TEST_F(ProcessTreeTest, IsGoneAtOnceIfNothingWasLeft) {
    tree_->sweep();
    EXPECT_EQ(events_, "gone");
    EXPECT_FALSE(exit_);
}

}  // namespace
}  // namespace tune::worker
