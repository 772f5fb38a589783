#include "worker/agent/attempts/exit_class.h"

#include <signal.h>

#include <cerrno>
#include <cstring>

#include "worker/agent/output/trial_output.h"

namespace tune::worker {
namespace {

using tuner::Outcome;

constexpr int kExitPruned = 10;
constexpr int kExitPreempted = 11;
constexpr int kExitOom = 12;
constexpr int kExitBadConfig = 13;
constexpr std::size_t kReasonBytesMax = 300;

struct Verdict {
    Outcome outcome;
    std::string reason;
};

std::string signal_text(int signal) {
    const char* name = sigabbrev_np(signal);
    return "signal " + std::to_string(signal) +
           (name == nullptr ? "" : " (SIG" + std::string(name) + ")");
}

std::string last_words(const Ending& ending) {
    std::string line = last_line(ending.err_tail, kReasonBytesMax);
    if (line.empty()) line = last_line(ending.out_tail, kReasonBytesMax);
    return line;
}

std::string with_last_words(std::string reason, const Ending& ending) {
    const std::string words = last_words(ending);
    return words.empty() ? reason : reason + ": " + words;
}

Verdict never_started(const Ending& ending) {
    const ExitRecord& exit = *ending.exit;
    const std::string system = std::strerror(exit.failed_errno);
    const std::string program = ending.command.empty() ? "" : ending.command.front();
    switch (exit.failed_step) {
        case StartStep::kWorkingDir:
            return {Outcome::kBadConfig, "the working directory '" + ending.working_dir +
                                             "' cannot be entered: " + system};
        case StartStep::kExec: break;
        default: return {Outcome::kLost, "the trial could not be started: " + system};
    }
    if (exit.failed_errno == ENOENT && program.find('/') == std::string::npos)
        return {Outcome::kBadConfig, "command not found: '" + program +
                                         "' is in no folder of PATH (" + ending.search_path + ")"};
    if (exit.failed_errno == ENOENT)
        return {Outcome::kBadConfig, "command not found: there is no '" + program +
                                         "', or the interpreter that its first line names"};
    if (exit.failed_errno == EACCES)
        return {Outcome::kBadConfig,
                "'" + program + "' cannot be executed: permission denied (chmod +x?)"};
    if (exit.failed_errno == E2BIG || exit.failed_errno == ENOEXEC ||
        exit.failed_errno == ENOTDIR || exit.failed_errno == ELOOP ||
        exit.failed_errno == ENAMETOOLONG)
        return {Outcome::kBadConfig, "'" + program + "' cannot be executed: " + system};
    return {Outcome::kLost, "'" + program + "' could not be started: " + system};
}

Verdict ended_by_us(const Ending& ending) {
    const IntentRecord& intent = ending.intent;
    switch (intent.intent) {
        case Intent::kPrune: return {Outcome::kPruned, intent.reason};
        case Intent::kStop: return {Outcome::kCancelled, intent.reason};
        default: return {Outcome::kPreempted, intent.reason};
    }
}

Verdict exited(const Ending& ending, int code) {
    switch (code) {
        case 0: return {Outcome::kDone, ""};
        case kExitPruned: return {Outcome::kPruned, "the trial pruned itself (exit code 10)"};
        case kExitPreempted:
            return {Outcome::kPreempted, "the trial asked to be run again (exit code 11)"};
        case kExitOom:
            return {Outcome::kOom, with_last_words("out of memory (exit code 12)", ending)};
        case kExitBadConfig:
            return {Outcome::kBadConfig,
                    with_last_words("bad configuration (exit code 13)", ending)};
        default: break;
    }
    if (says_out_of_memory(ending.err_tail) || says_out_of_memory(ending.out_tail))
        return {Outcome::kOom,
                with_last_words("out of memory (exit code " + std::to_string(code) + ")", ending)};
    return {Outcome::kFailed, with_last_words("exit code " + std::to_string(code), ending)};
}

Verdict judge(const Ending& ending) {
    if (!ending.exit)
        return {Outcome::kLost, "the supervisor of the trial was killed, so its end is unknown"};
    const ExitRecord& exit = *ending.exit;
    if (exit.failed_step != StartStep::kNone) return never_started(ending);
    if (exit.stopped && ending.intent.intent != Intent::kNone) return ended_by_us(ending);
    if (exit.timed_out)
        return {Outcome::kFailed, "ended after its time-out of " +
                                      std::to_string(ending.timeout_ms / 1000) + "." +
                                      std::to_string(ending.timeout_ms % 1000 / 100) + " s"};
    // A shell reports its child's SIGKILL as 137.
    const bool killed = exit.signal == SIGKILL || exit.exit_code == 128 + SIGKILL;
    if (killed && ending.oom_killed && !exit.killed)
        return {Outcome::kOom, "killed by the system for want of memory"};
    if (exit.signal == 0) return exited(ending, exit.exit_code);
    if (exit.signal == SIGABRT && says_out_of_memory(ending.err_tail))
        return {Outcome::kOom, with_last_words("out of memory", ending)};
    return {Outcome::kFailed, with_last_words("ended by " + signal_text(exit.signal), ending)};
}

}  // namespace

bool says_out_of_memory(std::string_view text) {
    for (const std::string_view words :
         {"CUDA out of memory", "CUDA error: out of memory", "CUDA_ERROR_OUT_OF_MEMORY",
          "OutOfMemoryError", "RESOURCE_EXHAUSTED: Out of memory", "OOM when allocating tensor",
          "DefaultCPUAllocator: can't allocate memory", "std::bad_alloc", "\nMemoryError"})
        if (text.find(words) != std::string_view::npos) return true;
    return text.starts_with("MemoryError");
}

tuner::FinishRequest classify(const Ending& ending) {
    Verdict verdict = judge(ending);
    tuner::FinishRequest request;
    request.outcome = verdict.outcome;
    request.reason = std::move(verdict.reason);
    if (!ending.exit) return request;
    if (ending.exit->exit_code >= 0) request.exit_code = ending.exit->exit_code;
    if (ending.exit->signal > 0) request.signal = ending.exit->signal;
    request.timed_out = ending.exit->timed_out && request.outcome == Outcome::kFailed;
    request.max_rss_kb = ending.exit->max_rss_kb;
    request.cpu_ms = ending.exit->cpu_ms;
    request.wall_ms = ending.exit->wall_ms;
    return request;
}

}  // namespace tune::worker
