// Limits by real cgroups, where this machine has some of version 2 to give: as root in the root of
// them, or in the folder that $TUNE_TEST_CGROUP names. cgroups_in_uml.sh runs these on any machine.

#include "worker/agent/devices/cgroups.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/worker/agent/scratch.h"
#include "worker/agent/attempts/attempt_files.h"
#include "worker/agent/attempts/exit_class.h"
#include "worker/agent/supervisor/launcher.h"

namespace tune::worker {
namespace {

constexpr const char* kMounts =
    "22 1 0:21 / /proc rw,relatime - proc proc rw\n"
    "31 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

TEST(CgroupFolder, OfAProcess) {
    EXPECT_EQ(cgroup_folder("0::/user.slice/run-1.scope\n", kMounts),
              "/sys/fs/cgroup/user.slice/run-1.scope");
    EXPECT_EQ(cgroup_folder("4:memory:/old\n0::/\n", kMounts), "/sys/fs/cgroup/");
}

TEST(CgroupFolder, WhereOnlyAPartIsMounted) {
    const std::string mounts = "31 22 0:26 /pod/one /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    EXPECT_EQ(cgroup_folder("0::/pod/one/tune\n", mounts), "/sys/fs/cgroup/tune");
    EXPECT_EQ(cgroup_folder("0::/elsewhere\n", mounts), "");
}

TEST(CgroupFolder, OfVersion1IsNone) {
    EXPECT_EQ(cgroup_folder("4:memory:/old\n", kMounts), "");
    EXPECT_EQ(cgroup_folder("0::/\n", "30 22 0:25 / /sys/fs/cgroup/memory rw - cgroup cgroup rw\n"),
              "");
}

TEST(Cgroups, AnyOtherFolderIsRefused) {
    const Scratch folder;
    const Result<Cgroups> cgroups = Cgroups::open(folder.path());
    EXPECT_EQ(cgroups.error().code, Code::kResourceDoesNotExist);
    EXPECT_EQ(cgroups.error().message, "'" + folder.path().string() +
                                           "' is no cgroup of version 2 with a memory controller");
}

class RealCgroups : public testing::Test {
protected:
    void SetUp() override {
        const char* given = std::getenv("TUNE_TEST_CGROUP");
        parent_ = given != nullptr ? given : "/sys/fs/cgroup";
        folder_ = parent_ / ("tune-test-" + std::to_string(getpid()));
        std::error_code error;
        std::filesystem::create_directory(folder_, error);
        if (error)
            GTEST_SKIP() << "no cgroup can be made in " << parent_ << ": " << error.message();
        Result<Cgroups> cgroups = Cgroups::open(folder_);
        if (!cgroups) GTEST_SKIP() << cgroups.error().message;
        cgroups_.emplace(std::move(*cgroups));
    }
    void TearDown() override {
        std::error_code ignored;
        for (const char* leaf : {"agent", "supervisors"})
            std::filesystem::remove(folder_ / leaf, ignored);
        std::filesystem::remove(folder_, ignored);
    }
    /// Runs a trial under its supervisor in a cgroup of its own.
    ExitRecord run(const std::string& script, const CgroupLimits& limits,
                   std::int64_t grace_ms = 10'000) {
        LaunchSpec spec;
        spec.directory = trial_.path();
        spec.wake_fifo = "/dev/null";
        spec.grace_ms = grace_ms;
        spec.command = {"sh", "-c", script};
        spec.environment = {"PATH=/usr/local/bin:/usr/bin:/bin"};
        const Result<std::filesystem::path> cgroup = cgroups_->create("trial", limits);
        EXPECT_TRUE(cgroup) << cgroup.error().text();
        spec.cgroup = cgroup.value();
        const Launcher launcher = Launcher::create().value();
        const Process process = launcher.start(spec).value();
        pollfd ready{process.pidfd.get(), POLLIN, 0};
        EXPECT_EQ(poll(&ready, 1, 120'000), 1);
        reap_process(process);
        EXPECT_FALSE(std::filesystem::exists(*cgroup)) << "the supervisor removes it";
        return AttemptFiles(trial_.path()).read_exit().value();
    }
    [[nodiscard]] std::string out() const { return trial_.read(kStdoutFile); }

    std::filesystem::path parent_;
    std::filesystem::path folder_;
    std::optional<Cgroups> cgroups_;
    Scratch trial_;
};

TEST_F(RealCgroups, WhoNeedsTooMuchMemoryIsKilledAndSaysSo) {
    const ExitRecord exit = run("head -c 200000000 /dev/zero | tail -c 200000000 | wc -c",
                                {.memory_bytes = 50'000'000});
    EXPECT_GT(exit.oom_kills, 0);
    EXPECT_GT(exit.memory_peak, 40'000'000);
    EXPECT_LE(exit.memory_peak, 50'000'000);
    AttemptEnd end;
    end.exit = exit;
    end.memory_limit_bytes = 50'000'000;
    const tuner::FinishRequest finish = classify(end);
    EXPECT_EQ(finish.outcome, tuner::Outcome::kOom);
    EXPECT_EQ(finish.reason,
              "killed by the system because it needed more than its 50 MB of memory");
    EXPECT_GT(finish.peak_memory_bytes, 40'000'000);
}

TEST_F(RealCgroups, MemoryOfAllProcessesIsMeasured) {
    const ExitRecord exit =
        run("for i in 1 2 3; do (head -c 20000000 /dev/zero | tail -c 20000000 | "
            "{ head -c 1 >/dev/null; sleep 1; }) & done; wait",
            {.memory_bytes = 500'000'000});
    EXPECT_EQ(exit.exit_code, 0);
    EXPECT_EQ(exit.oom_kills, 0);
    EXPECT_GT(exit.memory_peak, 55'000'000) << "three of 20 MB at a time";
}

TEST_F(RealCgroups, ProcessesAreCounted) {
    const ExitRecord exit =
        run("for i in 1 2 3 4 5 6 7 8; do sleep 1 & done; wait; echo all", {.processes = 4});
    EXPECT_NE(exit.exit_code, 0);
    EXPECT_EQ(out(), "");
}

TEST_F(RealCgroups, TheTrialIsInItAndItsSupervisorIsNot) {
    const ExitRecord exit =
        run("cat /proc/self/cgroup /proc/$PPID/cgroup", {.cpus = 1, .processes = 100});
    EXPECT_EQ(exit.exit_code, 0);
    EXPECT_NE(out().find("/trial\n"), std::string::npos) << out();
    EXPECT_NE(out().find("/supervisors\n"), std::string::npos) << out();
}

TEST_F(RealCgroups, ADeafTreeIsGoneAllTheSame) {
    const ExitRecord exit =
        run("(trap '' TERM; setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' &) ; exit 3",
            {.memory_bytes = 500'000'000}, 100);
    EXPECT_EQ(exit.exit_code, 3);
    EXPECT_TRUE(exit.swept);
}

TEST_F(RealCgroups, WhatASupervisorLeftIsRemoved) {
    const std::filesystem::path left = cgroups_->create("left", {}).value();
    cgroups_->remove("left");
    EXPECT_FALSE(std::filesystem::exists(left));
    cgroups_->remove("left");
}

}  // namespace
}  // namespace tune::worker
