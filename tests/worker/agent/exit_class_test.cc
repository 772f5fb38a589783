#include "worker/agent/attempts/exit_class.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>

namespace tune::worker {
namespace {

using tuner::Outcome;

Ending ending_with_code(int code) {
    Ending ending;
    ending.exit.emplace();
    ending.exit->exit_code = code;
    ending.command = {"train"};
    return ending;
}

Ending ending_by_signal(int signal) {
    Ending ending = ending_with_code(-1);
    ending.exit->signal = signal;
    return ending;
}

TEST(ExitClass, OfEachExitCode) {
    EXPECT_EQ(classify(ending_with_code(0)).outcome, Outcome::kDone);
    EXPECT_EQ(classify(ending_with_code(10)).outcome, Outcome::kPruned);
    EXPECT_EQ(classify(ending_with_code(11)).outcome, Outcome::kPreempted);
    EXPECT_EQ(classify(ending_with_code(12)).outcome, Outcome::kOom);
    EXPECT_EQ(classify(ending_with_code(13)).outcome, Outcome::kBadConfig);
    for (const int code : {1, 2, 3, 14, 127, 255}) {
        EXPECT_EQ(classify(ending_with_code(code)).outcome, Outcome::kFailed);
        EXPECT_EQ(classify(ending_with_code(code)).exit_code, code);
    }
}

TEST(ExitClass, AFailureQuotesTheLastWords) {
    Ending ending = ending_with_code(1);
    ending.err_tail = "Traceback\nValueError: lr must be positive\n";
    EXPECT_EQ(classify(ending).reason, "exit code 1: ValueError: lr must be positive");
}

TEST(ExitClass, OfSignals) {
    const tuner::FinishRequest request = classify(ending_by_signal(SIGSEGV));
    EXPECT_EQ(request.outcome, Outcome::kFailed);
    EXPECT_EQ(request.signal, SIGSEGV);
    EXPECT_FALSE(request.exit_code);
    EXPECT_EQ(request.reason, "ended by signal 11 (SIGSEGV)");
}

TEST(ExitClass, MemoryThatRanOut) {
    Ending cuda = ending_with_code(1);
    cuda.err_tail = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n";
    EXPECT_EQ(classify(cuda).outcome, Outcome::kOom);
    Ending killed = ending_by_signal(SIGKILL);
    EXPECT_EQ(classify(killed).outcome, Outcome::kFailed);
    killed.oom_killed = true;
    EXPECT_EQ(classify(killed).outcome, Outcome::kOom);
    killed.exit->killed = true;  // that SIGKILL was ours
    EXPECT_EQ(classify(killed).outcome, Outcome::kFailed);
    Ending shell = ending_with_code(137);
    shell.oom_killed = true;
    EXPECT_EQ(classify(shell).outcome, Outcome::kOom);
    Ending done = ending_with_code(0);
    done.out_tail = "survived a CUDA out of memory\n";
    EXPECT_EQ(classify(done).outcome, Outcome::kDone);
}

TEST(ExitClass, WhatTheAgentEndedItNames) {
    const auto outcome = [](Intent intent, int code, bool stopped) {
        Ending ending = ending_with_code(code);
        ending.exit->stopped = stopped;
        ending.intent = {intent, "because"};
        return classify(ending).outcome;
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
    Ending ending = ending_by_signal(SIGTERM);
    ending.exit->timed_out = true;
    ending.timeout_ms = 1500;
    EXPECT_EQ(classify(ending).outcome, Outcome::kFailed);
    EXPECT_EQ(classify(ending).reason, "ended after its time-out of 1.5 s");
    EXPECT_TRUE(classify(ending).timed_out);
    ending.exit->timed_out = false;
    EXPECT_FALSE(classify(ending).timed_out);
}

TEST(ExitClass, CommandsThatCannotBeStarted) {
    const auto request = [](StartStep step, int failure, std::string program) {
        Ending ending = ending_with_code(-1);
        ending.exit->failed_step = step;
        ending.exit->failed_errno = failure;
        ending.command = {std::move(program)};
        ending.search_path = "/bin";
        ending.working_dir = "/nowhere";
        return classify(ending);
    };
    EXPECT_EQ(request(StartStep::kExec, ENOENT, "trian").outcome, Outcome::kBadConfig);
    EXPECT_EQ(request(StartStep::kExec, ENOENT, "trian").reason,
              "command not found: 'trian' is in no folder of PATH (/bin)");
    EXPECT_EQ(request(StartStep::kExec, ENOENT, "./x").outcome, Outcome::kBadConfig);
    EXPECT_NE(request(StartStep::kExec, EACCES, "./x").reason.find("chmod"), std::string::npos);
    EXPECT_EQ(request(StartStep::kWorkingDir, ENOENT, "x").outcome, Outcome::kBadConfig);
    EXPECT_NE(request(StartStep::kWorkingDir, ENOENT, "x").reason.find("/nowhere"),
              std::string::npos);
    EXPECT_EQ(request(StartStep::kSystem, EMFILE, "x").outcome, Outcome::kLost);
}

TEST(ExitClass, AKilledSupervisorIsNotTheUsersFault) {
    Ending ending;
    EXPECT_EQ(classify(ending).outcome, Outcome::kLost);
}

}  // namespace
}  // namespace tune::worker
