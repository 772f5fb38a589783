// Real processes under real supervisors: what a trial may do to its pipes, its group and its end.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tests/worker/agent/scratch.h"
#include "worker/agent/attempts/attempt_files.h"
#include "worker/agent/attempts/environment.h"
#include "worker/agent/devices/devices.h"
#include "worker/agent/supervisor/launcher.h"

namespace tune::worker {
namespace {

constexpr int kPatience_ms = 60'000;  // only ever waited for by a test that fails

class SupervisorTest : public testing::Test {
protected:
    void SetUp() override {
        Result<Launcher> made = Launcher::create();
        ASSERT_TRUE(made) << made.error().text();
        launcher_.emplace(std::move(*made));
        ASSERT_EQ(mkfifo((scratch_.path() / "wake").c_str(), 0600), 0);
        wake_.reset(open((scratch_.path() / "wake").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
        environment_ = own_environment();
    }

    LaunchSpec spec(std::vector<std::string> command) {
        const std::string name = "a" + std::to_string(++count_);
        std::filesystem::create_directory(scratch_.path() / name);
        LaunchSpec spec;
        spec.directory = scratch_.path() / name;
        spec.wake_fifo = scratch_.path() / "wake";
        spec.serial = count_;
        spec.grace_ms = 20'000;
        spec.command = std::move(command);
        spec.environment = environment_;
        return spec;
    }
    Process launch(const LaunchSpec& spec) {
        directory_ = spec.directory;
        Result<Process> process = launcher_->start(spec);
        EXPECT_TRUE(process) << process.error().text();
        return std::move(*process);
    }
    Process run(std::vector<std::string> command) { return launch(spec(std::move(command))); }
    Process shell(const std::string& script) { return run({"sh", "-c", script}); }
    Process python(const std::string& script) { return run({"python3", "-c", script}); }

    static bool wait(const Process& process) {
        pollfd ready{process.pidfd.get(), POLLIN, 0};
        const bool ended = poll(&ready, 1, kPatience_ms) == 1;
        reap_process(process);
        return ended;
    }
    ExitRecord finish(const Process& process) {
        EXPECT_TRUE(wait(process));
        const std::optional<ExitRecord> exit = AttemptFiles(directory_).read_exit();
        EXPECT_TRUE(exit.has_value());
        return exit.value_or(ExitRecord{});
    }
    /// Waits until the trial has printed `text`.
    void wait_for_output(const std::string& text) {
        for (std::string seen; seen.find(text) == std::string::npos; seen = output()) {
            pollfd ready{wake_.get(), POLLIN, 0};
            ASSERT_EQ(poll(&ready, 1, kPatience_ms), 1) << "no output; so far: " << seen;
            char buffer[4096];
            ASSERT_GT(read(wake_.get(), buffer, sizeof buffer), 0);
        }
    }
    std::string output(const char* name = kStdoutFile) {
        return scratch_.read((directory_.filename() / name).string());
    }
    static bool lives(int pid) { return kill(pid, 0) == 0; }

    Scratch scratch_;
    std::optional<Launcher> launcher_;
    UniqueFd wake_;
    std::vector<std::string> environment_;
    std::filesystem::path directory_;
    std::uint64_t count_ = 0;
};

TEST_F(SupervisorTest, ReportsEveryExitCode) {
    for (const int code : {0, 1, 10, 11, 12, 13, 42, 127, 255}) {
        const ExitRecord exit = finish(shell("exit " + std::to_string(code)));
        EXPECT_EQ(exit.exit_code, code);
        EXPECT_EQ(exit.signal, 0);
        EXPECT_FALSE(exit.stopped || exit.killed || exit.swept || exit.timed_out);
    }
}

TEST_F(SupervisorTest, ReportsSignals) {
    for (const int signal : {SIGKILL, SIGSEGV, SIGTERM, SIGABRT}) {
        const ExitRecord exit = finish(shell("kill -" + std::to_string(signal) + " $$"));
        EXPECT_EQ(exit.signal, signal);
        EXPECT_EQ(exit.exit_code, -1);
        EXPECT_FALSE(exit.killed);
    }
}

TEST_F(SupervisorTest, SaysWhyACommandDidNotStart) {
    ExitRecord exit = finish(run({"no-such-command"}));
    EXPECT_EQ(exit.failed_step, StartStep::kExec);
    EXPECT_EQ(exit.failed_errno, ENOENT);
    exit = finish(run({"/etc/passwd"}));
    EXPECT_EQ(exit.failed_errno, EACCES);
    LaunchSpec lost = spec({"true"});
    lost.working_dir = "/no/such/folder";
    exit = finish(launch(lost));
    EXPECT_EQ(exit.failed_step, StartStep::kWorkingDir);
    EXPECT_EQ(exit.failed_errno, ENOENT);
}

TEST_F(SupervisorTest, SearchesTheTrialsOwnPath) {
    const std::filesystem::path program = scratch_.path() / "my-program";
    scratch_.append("my-program", "#!/bin/sh\necho found\n");
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    std::erase_if(environment_, [](const std::string& item) { return item.starts_with("PATH="); });
    environment_.push_back("PATH=" + scratch_.path().string() + ":/usr/bin:/bin");
    EXPECT_EQ(finish(run({"my-program"})).exit_code, 0);
    EXPECT_EQ(output(), "found\n");
}

TEST_F(SupervisorTest, KeepsBothOutputsApart) {
    finish(shell("echo one; echo two >&2; printf three"));
    EXPECT_EQ(output(), "one\nthree");
    EXPECT_EQ(output(kStderrFile), "two\n");
}

TEST_F(SupervisorTest, MakesNoFilesWithoutOutput) {
    finish(run({"true"}));
    EXPECT_FALSE(std::filesystem::exists(directory_ / kStdoutFile));
    EXPECT_FALSE(std::filesystem::exists(directory_ / kStderrFile));
}

TEST_F(SupervisorTest, StoresAMegabyteWithoutANewline) {
    finish(python("import os; os.write(1, b'x' * 1000000)"));
    EXPECT_EQ(output(), std::string(1'000'000, 'x'));
}

TEST_F(SupervisorTest, StoresBinaryOutputAsItIs) {
    finish(python("import os; [os.write(1, bytes(range(256))) for _ in range(1000)]"));
    const std::string bytes = output();
    ASSERT_EQ(bytes.size(), 256'000u);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        ASSERT_EQ(static_cast<unsigned char>(bytes[i]), i % 256);
}

TEST_F(SupervisorTest, AClosedOutputEndsNothing) {
    const ExitRecord exit =
        finish(python("import os\nos.write(1, b'a\\n')\nos.close(1)\n"
                      "os.write(2, b'still here\\n')\nos._exit(5)"));
    EXPECT_EQ(exit.exit_code, 5);
    EXPECT_EQ(output(), "a\n");
    EXPECT_EQ(output(kStderrFile), "still here\n");
}

TEST_F(SupervisorTest, ReopeningStdoutLosesNothing) {
    finish(shell("echo one; echo two >/dev/stdout; echo three"));
    EXPECT_EQ(output(), "one\ntwo\nthree\n");
}

TEST_F(SupervisorTest, BoundsALongLog) {
    const ExitRecord exit =
        finish(python("import os\nos.write(1, b'begin')\n"
                      "for _ in range(110): os.write(1, b'x' * (1 << 20))\nos.write(1, b'end')"));
    EXPECT_EQ(exit.exit_code, 0);
    struct stat info {};
    ASSERT_EQ(stat((directory_ / kStdoutFile).c_str(), &info), 0);
    EXPECT_EQ(info.st_size, 110 * (1 << 20) + 8);
    EXPECT_LT(info.st_blocks * 512, kLogHeadBytes + kLogTailBytes + 2 * kLogPunchBytes);
    const std::string text = output();
    EXPECT_TRUE(text.starts_with("beginxxx"));
    EXPECT_TRUE(text.ends_with("xxxend"));
}

TEST_F(SupervisorTest, GivesTheTrialADefaultWorld) {
    finish(
        python("import os, signal\n"
               "print(signal.pthread_sigmask(signal.SIG_BLOCK, []),"
               " os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid(),"
               " sorted(int(f) for f in os.listdir('/proc/self/fd'))[:3],"
               " os.read(0, 10))"));
    EXPECT_EQ(output(), "set() True True [0, 1, 2] b''\n");
}

TEST_F(SupervisorTest, LeaksNoDescriptorIntoTheTrial) {
    const UniqueFd inheritable(open("/dev/null", O_RDONLY));  // without O_CLOEXEC
    finish(shell("ls /proc/self/fd | wc -l"));
    EXPECT_EQ(output(), "4\n");  // 0, 1, 2 and the folder that ls itself reads
}

TEST_F(SupervisorTest, PinsToItsCores) {
    const int core = allowed_cores().back();
    LaunchSpec pinned = spec({"python3", "-c", "import os; print(*os.sched_getaffinity(0))"});
    pinned.cores = {core};
    finish(launch(pinned));
    EXPECT_EQ(output(), std::to_string(core) + "\n");
}

TEST_F(SupervisorTest, CountsWhatTheTrialUsed) {
    const ExitRecord exit =
        finish(python("x = bytearray(100 << 20)\nfor i in range(2000000): pass"));
    EXPECT_GT(exit.max_rss_kb, 100 << 10);
    EXPECT_GT(exit.cpu_ms, 0);
    EXPECT_GT(exit.wall_ms, 0);
    EXPECT_GT(exit.end_ms, 1'600'000'000'000);
}

TEST_F(SupervisorTest, StopsWithSigterm) {
    const Process process = python(
        "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *a: sys.exit(7))\n"
        "print('ready', flush=True)\nwhile True: signal.pause()");
    wait_for_output("ready");
    signal_process(process, SIGTERM);
    const ExitRecord exit = finish(process);
    EXPECT_EQ(exit.exit_code, 7);
    EXPECT_TRUE(exit.stopped);
    EXPECT_FALSE(exit.killed);
}

TEST_F(SupervisorTest, KillsWhatIgnoresSigterm) {
    LaunchSpec stubborn =
        spec({"sh", "-c", "trap '' TERM; echo ready; sleep 100 & wait; sleep 100"});
    stubborn.grace_ms = 100;
    const Process process = launch(stubborn);
    wait_for_output("ready");
    signal_process(process, SIGTERM);
    const ExitRecord exit = finish(process);
    EXPECT_EQ(exit.signal, SIGKILL);
    EXPECT_TRUE(exit.stopped && exit.killed);
}

TEST_F(SupervisorTest, KillsAtOnceWhenAsked) {
    const Process process = shell("trap '' TERM QUIT; echo ready; while true; do sleep 100; done");
    wait_for_output("ready");
    signal_process(process, SIGQUIT);
    EXPECT_EQ(finish(process).signal, SIGKILL);
}

TEST_F(SupervisorTest, AStopBeforeItIsUpIsNotLost) {
    for (int i = 0; i < 20; ++i) {
        const Process process = shell("sleep 100");
        signal_process(process, SIGTERM);
        const ExitRecord exit = finish(process);
        EXPECT_TRUE(exit.stopped);
        EXPECT_EQ(exit.signal, SIGTERM);
    }
}

TEST_F(SupervisorTest, WakesAStoppedTrialToEndIt) {
    const Process process = shell("echo ready; kill -STOP $$; sleep 100");
    wait_for_output("ready");
    signal_process(process, SIGTERM);
    EXPECT_EQ(finish(process).signal, SIGTERM);
}

TEST_F(SupervisorTest, EndsATrialAtItsTimeOut) {
    LaunchSpec slow = spec({"sleep", "100"});
    slow.timeout_ms = 50;
    const ExitRecord exit = finish(launch(slow));
    EXPECT_TRUE(exit.timed_out);
    EXPECT_FALSE(exit.stopped);
    EXPECT_EQ(exit.signal, SIGTERM);
}

TEST_F(SupervisorTest, EndsAGrandchildThatLeftTheGroup) {
    const ExitRecord exit =
        finish(python("import os, sys\n"
                      "r, w = os.pipe()\n"
                      "if os.fork() == 0:\n"
                      "    os.setsid()\n"
                      "    if os.fork() == 0:\n"
                      "        print(os.getpid(), flush=True)\n"
                      "        os.write(w, b'x')\n"
                      "        os.execvp('sleep', ['sleep', '100'])\n"
                      "    os._exit(0)\n"
                      "os.wait()\nos.read(r, 1)\nsys.exit(3)"));
    EXPECT_EQ(exit.exit_code, 3);
    EXPECT_TRUE(exit.swept);
    EXPECT_FALSE(lives(std::stoi(output())));
}

TEST_F(SupervisorTest, KillsAStubbornGrandchildThatLeftTheGroup) {
    LaunchSpec escape = spec({"python3", "-c",
                              "import os, signal, sys, time\n"
                              "r, w = os.pipe()\n"
                              "if os.fork() == 0:\n"
                              "    os.setsid()\n"
                              "    if os.fork() == 0:\n"
                              "        signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                              "        os.write(w, b'x')\n"
                              "        print(os.getpid(), flush=True)\n"
                              "        time.sleep(100)\n"
                              "    os._exit(0)\n"
                              "os.wait()\nos.read(r, 1)\nprint('up', flush=True)\n"
                              "time.sleep(100)"});
    escape.grace_ms = 200;
    const Process process = launch(escape);
    wait_for_output("up");
    signal_process(process, SIGTERM);
    const ExitRecord exit = finish(process);
    EXPECT_TRUE(exit.stopped && exit.killed && exit.swept);
    const std::string text = output();
    // The kill may have cut the last line off.
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line) && !lines.eof();) {
        if (line.empty() || line.find_first_not_of("0123456789") != std::string::npos) continue;
        EXPECT_FALSE(lives(std::stoi(line)));
    }
}

TEST_F(SupervisorTest, ADeadSupervisorTakesTheTrialWithIt) {
    environment_.emplace_back("MLFLOW_RUN_ID=run-of-a-dead-supervisor");
    environment_.emplace_back("TUNE_ATTEMPT=3");
    const Process process = shell("setsid sh -c 'echo up; exec sleep 100' & wait");
    wait_for_output("up");
    signal_process(process, SIGKILL);
    ASSERT_TRUE(wait(process));
    EXPECT_FALSE(AttemptFiles(directory_).read_exit().has_value());
    EXPECT_TRUE(find_marked_processes("run-of-a-dead-supervisor", 2).empty());
    // The main process died with the supervisor; the one that had left is found by its environment.
    std::vector<Process> survivors = find_marked_processes("run-of-a-dead-supervisor", 3);
    ASSERT_FALSE(survivors.empty());
    for (const Process& survivor : survivors) {
        signal_process(survivor, SIGKILL);
        pollfd ready{survivor.pidfd.get(), POLLIN, 0};
        EXPECT_EQ(poll(&ready, 1, kPatience_ms), 1);
    }
    EXPECT_TRUE(find_marked_processes("run-of-a-dead-supervisor", 3).empty());
}

/// A process that is in the middle of execve shows no environment; it was passed over, and lived
/// on.
TEST_F(SupervisorTest, AProcessThatIsBeingLoadedIsFoundByItsMark) {
    environment_.emplace_back("MLFLOW_RUN_ID=run-of-ever-new-programs");
    environment_.emplace_back("TUNE_ATTEMPT=1");
    const std::filesystem::path script = scratch_.path() / "again";
    std::ofstream(script) << "[ -n \"$TUNE_SAID\" ] || echo up\nTUNE_SAID=1 exec sh \"$0\"\n";
    const Process process = shell("exec sh '" + script.string() + "'");
    wait_for_output("up");
    for (int i = 0; i < 300 && !HasFailure(); ++i)
        EXPECT_EQ(find_marked_processes("run-of-ever-new-programs", 1).size(), 2u)
            << "the supervisor and the program, at scan " << i;
    signal_process(process, SIGTERM);
    finish(process);
}

TEST_F(SupervisorTest, StartsNothingThatAnAgentHasTaken) {
    const LaunchSpec taken = spec({"sh", "-c", "touch ran"});
    ASSERT_EQ(AttemptFiles(taken.directory).read_or_take_ownership().value().pid, 0);
    const Process process = launch(taken);
    ASSERT_TRUE(wait(process));
    EXPECT_FALSE(AttemptFiles(taken.directory).read_exit().has_value());
    EXPECT_FALSE(std::filesystem::exists(directory_ / kStdoutFile));
}

TEST_F(SupervisorTest, TakesTheFileOfAnEarlierOwner) {
    const LaunchSpec used = spec({"sh", "-c", "echo ready; sleep 100"});
    const auto spare = std::filesystem::path(used.directory) / "owner.spare";
    std::ofstream(spare) << std::string(kOwnerBytes, '9');
    const Process process = launch(used);
    wait_for_output("ready");
    EXPECT_FALSE(std::filesystem::exists(spare));
    const Owner owner = AttemptFiles(directory_).read_or_take_ownership().value();
    EXPECT_EQ(owner.pid, process.pid);
    EXPECT_TRUE(find_process(owner.pid, owner.start_time));
    signal_process(process, SIGTERM);
    EXPECT_TRUE(wait(process));
}

TEST_F(SupervisorTest, AFileOfAnEarlierOwnerReplacesNone) {
    const LaunchSpec taken = spec({"sh", "-c", "echo ran"});
    const auto folder = std::filesystem::path(taken.directory);
    ASSERT_EQ(AttemptFiles(folder).read_or_take_ownership().value().pid, 0);
    std::ofstream(folder / "owner.spare") << std::string(kOwnerBytes, ' ');
    ASSERT_TRUE(wait(launch(taken)));
    EXPECT_EQ(AttemptFiles(folder).read_or_take_ownership().value().pid, 0);
    EXPECT_FALSE(std::filesystem::exists(folder / kStdoutFile));
}

TEST_F(SupervisorTest, IsFoundAgainByItsOwnerLink) {
    const Process process = shell("echo ready; sleep 100");
    wait_for_output("ready");
    const Owner owner = AttemptFiles(directory_).read_or_take_ownership().value();
    EXPECT_EQ(owner.pid, process.pid);
    Result<Process> found = find_process(owner.pid, owner.start_time);
    ASSERT_TRUE(found);
    EXPECT_FALSE(find_process(owner.pid, owner.start_time + 1));
    signal_process(*found, SIGTERM);
    EXPECT_TRUE(wait(process));
    EXPECT_FALSE(find_process(owner.pid, owner.start_time));
}

TEST_F(SupervisorTest, ACommandThatIsTooLongIsRefused) {
    const Result<Process> process = launcher_->start(spec({"true", std::string(4 << 20, 'x')}));
    ASSERT_FALSE(process);
    EXPECT_EQ(process.error().code, Code::kInvalidParameterValue);
}

TEST_F(SupervisorTest, FiftyAtATime) {
    std::vector<std::pair<Process, std::filesystem::path>> running;
    for (int i = 0; i < 50; ++i) {
        Process process =
            shell("for i in 1 2 3 4 5; do echo line $i; done; exit " + std::to_string(i));
        running.emplace_back(std::move(process), directory_);
    }
    for (std::size_t i = 0; i < running.size(); ++i) {
        directory_ = running[i].second;
        EXPECT_EQ(finish(running[i].first).exit_code, static_cast<int>(i));
        EXPECT_EQ(output(), "line 1\nline 2\nline 3\nline 4\nline 5\n");
    }
}

/// Attempts of several processes.
class RanksTest : public SupervisorTest {
protected:
    /// As an agent writes kRanksFile for `count` processes.
    Process ranks(int count, const std::string& script) {
        LaunchSpec wanted = spec({"sh", "-c", script});
        std::string file;
        for (int rank = 0; rank < count; ++rank) {
            if (rank > 0) file += log_of(rank);
            file += '\0';
            file += "RANK=" + std::to_string(rank) + '\0' + "COMMON=own" + '\0';
            file += '\0';
        }
        std::ofstream(std::filesystem::path(wanted.directory) / kRanksFile, std::ios::binary)
            << file;
        return launch(wanted);
    }
    static std::string log_of(int rank) { return "rank-" + std::to_string(rank) + ".log"; }
    /// The process ids that `count` processes have printed as their first lines.
    std::vector<int> pids(int count) {
        std::vector<int> found;
        for (int rank = 0; rank < count; ++rank) {
            const std::string name = rank == 0 ? kStdoutFile : log_of(rank);
            while (output(name.c_str()).find('\n') == std::string::npos) {
                pollfd ready{wake_.get(), POLLIN, 0};
                if (poll(&ready, 1, kPatience_ms) != 1) return {};
                char buffer[4096];
                if (read(wake_.get(), buffer, sizeof buffer) <= 0) return {};
            }
            found.push_back(std::stoi(output(name.c_str())));
        }
        return found;
    }
    /// Waits until none of them is left.
    static bool are_gone(const std::vector<int>& pids) {
        for (const int pid : pids) {
            const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
            pollfd ready{process.get(), POLLIN, 0};
            if (process && poll(&ready, 1, kPatience_ms) != 1) return false;
        }
        return true;
    }
    static constexpr const char* kWait = "echo $$; while :; do sleep 0.1; done";
};

TEST_F(RanksTest, EachHasItsVariablesAndItsOutput) {
    environment_.push_back("COMMON=common");
    environment_.push_back("SHARED=all");
    const ExitRecord exit = finish(ranks(3, "echo out $RANK $COMMON $SHARED; echo err $RANK >&2"));
    EXPECT_EQ(exit.exit_code, 0);
    EXPECT_EQ(exit.failed_rank, -1);
    EXPECT_GT(exit.peak_kb, exit.max_rss_kb) << "of all three together";
    EXPECT_EQ(output(), "out 0 own all\n");
    EXPECT_EQ(output(kStderrFile), "err 0\n");
    EXPECT_EQ(output("rank-1.log"), "out 1 own all\nerr 1\n");
    EXPECT_EQ(output("rank-2.log"), "out 2 own all\nerr 2\n");
}

TEST_F(RanksTest, OneProcessMayHaveALeaderToo) {
    const ExitRecord exit = finish(ranks(1, "echo $RANK; exit 5"));
    EXPECT_EQ(exit.exit_code, 5);
    EXPECT_EQ(exit.failed_rank, 0);
    EXPECT_EQ(output(), "0\n");
}

TEST_F(RanksTest, TheFirstFailureEndsTheRest) {
    const ExitRecord exit = finish(ranks(3,
                                         "if [ $RANK = 1 ]; then exit 7; fi; trap 'exit 9' TERM; "
                                         "while :; do sleep 0.05; done"));
    EXPECT_EQ(exit.exit_code, 7);
    EXPECT_EQ(exit.failed_rank, 1);
    EXPECT_FALSE(exit.stopped);
}

TEST_F(RanksTest, OnesThatEndWellWaitForTheOthers) {
    const ExitRecord exit = finish(ranks(2, "[ $RANK = 0 ] || { sleep 0.3; echo late; }"));
    EXPECT_EQ(exit.exit_code, 0);
    EXPECT_EQ(output("rank-1.log"), "late\n");
}

TEST_F(RanksTest, AKilledProcessEndsTheRest) {
    const Process process = ranks(2, kWait);
    const std::vector<int> all = pids(2);
    ASSERT_EQ(all.size(), 2u);
    kill(all[1], SIGKILL);
    const ExitRecord exit = finish(process);
    EXPECT_EQ(exit.signal, SIGKILL);
    EXPECT_EQ(exit.failed_rank, 1);
    EXPECT_TRUE(are_gone(all));
}

TEST_F(RanksTest, AStopReachesAllAtOnce) {
    const Process process =
        ranks(2, "trap 'echo asked; exit 0' TERM; echo $$; while :; do sleep 0.05; done");
    ASSERT_EQ(pids(2).size(), 2u);
    signal_process(process, SIGTERM);
    const ExitRecord exit = finish(process);
    EXPECT_TRUE(exit.stopped);
    EXPECT_EQ(exit.exit_code, 0);
    EXPECT_NE(output().find("asked"), std::string::npos);
    EXPECT_NE(output("rank-1.log").find("asked"), std::string::npos);
}

TEST_F(RanksTest, OnesThatAreDeafAreKilled) {
    const Process process =
        ranks(2, "if [ $RANK = 1 ]; then trap '' TERM; fi; " + std::string(kWait));
    const std::vector<int> all = pids(2);
    ASSERT_EQ(all.size(), 2u);
    kill(all[0], SIGKILL);
    EXPECT_EQ(finish(process).failed_rank, 0);
    EXPECT_TRUE(are_gone(all));
}

TEST_F(RanksTest, NothingOutlivesAKilledSupervisorOrLeader) {
    const Process process = ranks(2, kWait);
    std::vector<int> all = pids(2);
    ASSERT_EQ(all.size(), 2u);
    signal_process(process, SIGKILL);
    EXPECT_TRUE(wait(process));
    EXPECT_TRUE(are_gone(all)) << "the leader dies with the supervisor, and they with it";

    const Process other = ranks(2, kWait);
    all = pids(2);
    ASSERT_EQ(all.size(), 2u);
    kill(getpgid(all[0]), SIGKILL);  // the leader is that of the group
    EXPECT_EQ(finish(other).signal, SIGKILL);
    EXPECT_TRUE(are_gone(all));
}

TEST_F(RanksTest, ACommandThatCannotStartSaysWhy) {
    LaunchSpec wanted = spec({"no-such-command"});
    std::ofstream(std::filesystem::path(wanted.directory) / kRanksFile, std::ios::binary)
        << std::string("\0\0rank-1.log\0\0", 14);
    const ExitRecord exit = finish(launch(wanted));
    EXPECT_EQ(exit.failed_step, StartStep::kExec);
    EXPECT_EQ(exit.failed_errno, ENOENT);
}

}  // namespace
}  // namespace tune::worker
