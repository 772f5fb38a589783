#include "worker/agent/devices/machine_locks.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tune::worker {
namespace {

std::string unique(const std::string& name) {
    return "tune-test-" + name + "-" + std::to_string(getpid());
}

bool is_free(const std::string& name) {
    return lock_on_machine(name).value().has_value();
}

TEST(MachineLocks, AreHeldOnce) {
    const std::string name = unique("once");
    std::optional<UniqueFd> lock = lock_on_machine(name).value();
    ASSERT_TRUE(lock);
    EXPECT_FALSE(is_free(name));
    EXPECT_TRUE(is_free(unique("other")));
    lock.reset();
    EXPECT_TRUE(is_free(name));
}

/// A process that inherits the lock, as a supervisor does, and the agent that dies before it.
TEST(MachineLocks, OutliveTheirMaker) {
    const std::string name = unique("child");
    std::optional<UniqueFd> lock = lock_on_machine(name).value();
    const pid_t child = fork();
    if (child == 0)
        while (true) pause();
    lock.reset();
    EXPECT_FALSE(is_free(name));
    const std::optional<UniqueFd> news = wait_for_release(name);
    ASSERT_TRUE(news);
    pollfd ready{news->get(), POLLIN, 0};
    EXPECT_EQ(poll(&ready, 1, 0), 0);
    kill(child, SIGKILL);
    EXPECT_EQ(poll(&ready, 1, 60'000), 1);
    EXPECT_TRUE(is_free(name));
    waitpid(child, nullptr, 0);
}

TEST(MachineLocks, NobodyToWaitFor) {
    EXPECT_FALSE(wait_for_release(unique("nobody")));
}

TEST(MachineLocks, NamesAreOfThings) {
    EXPECT_EQ(gpu_lock_name("GPU-1"), "tune-agent-gpu-GPU-1");
    EXPECT_EQ(core_lock_name(7), "tune-agent-core-7");
}

}  // namespace
}  // namespace tune::worker
