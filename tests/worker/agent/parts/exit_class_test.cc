#include "worker/agent/attempts/exit_class.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>

namespace tune::worker {
namespace {

using tuner::Outcome;

AttemptEnd ended_with_code(int code) {
    AttemptEnd end;
    end.exit.emplace();
    end.exit->exit_code = code;
    end.command = {"train"};
    return end;
}

AttemptEnd ended_by_signal(int signal) {
    AttemptEnd end = ended_with_code(-1);
    end.exit->signal = signal;
    return end;
}

TEST(ExitClass, OfEachExitCode) {
    EXPECT_EQ(classify(ended_with_code(0)).outcome, Outcome::kDone);
    EXPECT_EQ(classify(ended_with_code(10)).outcome, Outcome::kPruned);
    EXPECT_EQ(classify(ended_with_code(11)).outcome, Outcome::kPreempted);
    EXPECT_EQ(classify(ended_with_code(12)).outcome, Outcome::kOom);
    EXPECT_EQ(classify(ended_with_code(13)).outcome, Outcome::kBadConfig);
    for (const int code : {1, 2, 3, 14, 127, 255}) {
        EXPECT_EQ(classify(ended_with_code(code)).outcome, Outcome::kFailed);
        EXPECT_EQ(classify(ended_with_code(code)).exit_code, code);
    }
}

TEST(ExitClass, AFailureQuotesTheLastWords) {
    AttemptEnd end = ended_with_code(1);
    end.err_tail = "Traceback\nValueError: lr must be positive\n";
    EXPECT_EQ(classify(end).reason, "exit code 1: ValueError: lr must be positive");
}

TEST(ExitClass, OfSignals) {
    const tuner::FinishRequest request = classify(ended_by_signal(SIGSEGV));
    EXPECT_EQ(request.outcome, Outcome::kFailed);
    EXPECT_EQ(request.signal, SIGSEGV);
    EXPECT_FALSE(request.exit_code);
    EXPECT_EQ(request.reason, "ended by signal 11 (SIGSEGV)");
}

TEST(ExitClass, MemoryThatRanOut) {
    AttemptEnd cuda = ended_with_code(1);
    cuda.err_tail = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n";
    EXPECT_EQ(classify(cuda).outcome, Outcome::kOom);
    AttemptEnd killed = ended_by_signal(SIGKILL);
    EXPECT_EQ(classify(killed).outcome, Outcome::kFailed);
    killed.oom_killed = true;
    EXPECT_EQ(classify(killed).outcome, Outcome::kOom);
    killed.exit->killed = true;  // that SIGKILL was ours
    EXPECT_EQ(classify(killed).outcome, Outcome::kFailed);
    AttemptEnd shell = ended_with_code(137);
    shell.oom_killed = true;
    EXPECT_EQ(classify(shell).outcome, Outcome::kOom);
    AttemptEnd done = ended_with_code(0);
    done.out_tail = "survived a CUDA out of memory\n";
    EXPECT_EQ(classify(done).outcome, Outcome::kDone);
}

TEST(ExitClass, WhatTheAgentEndedItNames) {
    const auto outcome = [](Intent intent, int code, bool stopped) {
        AttemptEnd end = ended_with_code(code);
        end.exit->stopped = stopped;
        end.intent = {intent, "because"};
        return classify(end).outcome;
    };
    EXPECT_EQ(outcome(Intent::kPrune, 0, true), Outcome::kPruned);
    EXPECT_EQ(outcome(Intent::kStop, 1, true), Outcome::kCancelled);
    EXPECT_EQ(outcome(Intent::kCheckpointStop, 0, true), Outcome::kPreempted);
    EXPECT_EQ(outcome(Intent::kShutdown, 143, true), Outcome::kPreempted);
    EXPECT_EQ(outcome(Intent::kAway, 0, true), Outcome::kPreempted);
    // It ended by itself before the signal reached it: its own word counts.
    EXPECT_EQ(outcome(Intent::kPrune, 0, false), Outcome::kDone);
}

TEST(ExitClass, TimeOut) {
    AttemptEnd end = ended_by_signal(SIGTERM);
    end.exit->timed_out = true;
    end.timeout_ms = 1500;
    EXPECT_EQ(classify(end).outcome, Outcome::kFailed);
    EXPECT_EQ(classify(end).reason, "stopped after its timeout of 1.5 s");
    EXPECT_TRUE(classify(end).timed_out);
    end.exit->timed_out = false;
    EXPECT_FALSE(classify(end).timed_out);
}

TEST(ExitClass, CommandsThatCannotBeStarted) {
    const auto request = [](StartStep step, int failure, std::string program) {
        AttemptEnd end = ended_with_code(-1);
        end.exit->failed_step = step;
        end.exit->failed_errno = failure;
        end.command = {std::move(program)};
        end.search_path = "/bin";
        end.working_dir = "/nowhere";
        return classify(end);
    };
    EXPECT_EQ(request(StartStep::kExec, ENOENT, "trian").outcome, Outcome::kBadConfig);
    EXPECT_EQ(request(StartStep::kExec, ENOENT, "trian").reason,
              "command not found: 'trian' is not in PATH (/bin)");
    EXPECT_EQ(request(StartStep::kExec, ENOENT, "./x").outcome, Outcome::kBadConfig);
    EXPECT_NE(request(StartStep::kExec, EACCES, "./x").reason.find("chmod"), std::string::npos);
    EXPECT_EQ(request(StartStep::kWorkingDir, ENOENT, "x").outcome, Outcome::kBadConfig);
    EXPECT_NE(request(StartStep::kWorkingDir, ENOENT, "x").reason.find("/nowhere"),
              std::string::npos);
    EXPECT_EQ(request(StartStep::kSystem, EMFILE, "x").outcome, Outcome::kLost);
}

TEST(ExitClass, AKilledSupervisorIsNotTheUsersFault) {
    AttemptEnd end;
    EXPECT_EQ(classify(end).outcome, Outcome::kLost);
}

TEST(ExitClass, AKillInItsOwnCgroupIsOutOfMemory) {
    AttemptEnd end = ended_with_code(1);  // of a child that the main process noticed
    end.exit->oom_kills = 1;
    end.memory_limit_bytes = 2'000'000'000;
    end.exit->memory_peak = 1'999'000 * 1024LL;
    EXPECT_EQ(classify(end).outcome, Outcome::kOom);
    EXPECT_EQ(classify(end).reason,
              "killed by the system because it needed more than its 2000 MB of memory");
    EXPECT_EQ(classify(end).peak_memory_bytes, 1'999'000 * 1024LL);
    end.exit->exit_code = 0;
    EXPECT_EQ(classify(end).outcome, Outcome::kDone) << "it did without that child";
}

TEST(ExitClass, OtherPeoplesOutOfMemoryIsNotACgroups) {
    AttemptEnd end = ended_by_signal(SIGKILL);
    end.exit->oom_kills = 0;
    end.oom_killed = true;  // somebody on this machine
    EXPECT_EQ(classify(end).outcome, Outcome::kFailed);
    end.exit->oom_kills = -1;
    EXPECT_EQ(classify(end).outcome, Outcome::kOom);
}

TEST(ExitClass, AFailedGpuIsNoFailureOfTheTrial) {
    AttemptEnd end = ended_with_code(1);
    end.gpu_fault = "GPU-a: the GPU is lost";
    EXPECT_EQ(classify(end).outcome, Outcome::kLost);
    EXPECT_EQ(classify(end).reason, "GPU-a: the GPU is lost");
    end.exit->exit_code = 0;
    EXPECT_EQ(classify(end).outcome, Outcome::kDone);
    end.exit->exit_code = 13;
    EXPECT_EQ(classify(end).outcome, Outcome::kBadConfig);
}

}  // namespace
}  // namespace tune::worker
