// The table of docs/agents.md as a chain of rules, first match wins: never started, ended by us,
// timed out, killed for memory, exit code, signal. What the agent itself caused comes before the
// exit code, because a trial that is asked to stop may exit with anything.

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

std::string last_words(const AttemptEnd& end) {
    std::string line = last_line(end.err_tail, kReasonBytesMax);
    if (line.empty()) line = last_line(end.out_tail, kReasonBytesMax);
    return line;
}

std::string with_last_words(std::string reason, const AttemptEnd& end) {
    const std::string words = last_words(end);
    return words.empty() ? reason : reason + ": " + words;
}

Verdict never_started(const AttemptEnd& end) {
    const ExitRecord& exit = *end.exit;
    const std::string system = std::strerror(exit.failed_errno);
    const std::string program = end.command.empty() ? "" : end.command.front();
    switch (exit.failed_step) {
        case StartStep::kWorkingDir:
            return {Outcome::kBadConfig,
                    "the working directory '" + end.working_dir + "' cannot be entered: " + system};
        case StartStep::kExec: break;
        default: return {Outcome::kLost, "the trial could not be started: " + system};
    }
    if (exit.failed_errno == ENOENT && program.find('/') == std::string::npos)
        return {Outcome::kBadConfig,
                "command not found: '" + program + "' is not in PATH (" + end.search_path + ")"};
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

Verdict ended_by_us(const AttemptEnd& end) {
    const IntentRecord& intent = end.intent;
    switch (intent.intent) {
        case Intent::kPrune: return {Outcome::kPruned, intent.reason};
        case Intent::kStop: return {Outcome::kCancelled, intent.reason};
        case Intent::kGpuFault: return {Outcome::kLost, intent.reason};
        default: return {Outcome::kPreempted, intent.reason};
    }
}

Verdict exited(const AttemptEnd& end, int code) {
    switch (code) {
        case 0: return {Outcome::kDone, ""};
        case kExitPruned: return {Outcome::kPruned, "the trial pruned itself (exit code 10)"};
        case kExitPreempted:
            return {Outcome::kPreempted, "the trial asked to run again (exit code 11)"};
        case kExitOom: return {Outcome::kOom, with_last_words("out of memory (exit code 12)", end)};
        case kExitBadConfig:
            return {Outcome::kBadConfig, with_last_words("bad configuration (exit code 13)", end)};
        default: break;
    }
    if (says_out_of_memory(end.err_tail) || says_out_of_memory(end.out_tail))
        return {Outcome::kOom,
                with_last_words("out of memory (exit code " + std::to_string(code) + ")", end)};
    return {Outcome::kFailed, with_last_words("exit code " + std::to_string(code), end)};
}

Verdict killed_for_memory(const AttemptEnd& end) {
    const std::int64_t limit_mb = end.memory_limit_bytes / 1'000'000;
    if (limit_mb <= 0) return {Outcome::kOom, "killed by the system because memory ran out"};
    return {Outcome::kOom, "killed by the system because it needed more than its " +
                               std::to_string(limit_mb) + " MB of memory"};
}

/// Not what the trial said of itself by one of the known exit codes.
bool is_failure(const ExitRecord& exit) {
    return exit.exit_code != 0 && exit.exit_code != kExitPruned &&
           exit.exit_code != kExitPreempted && exit.exit_code != kExitBadConfig;
}

Verdict verdict_of(const AttemptEnd& end) {
    if (!end.exit)
        return {Outcome::kLost, "the supervisor of the trial was killed, so its end is unknown"};
    const ExitRecord& exit = *end.exit;
    if (exit.failed_step != StartStep::kNone) return never_started(end);
    if (exit.stopped && end.intent.intent != Intent::kNone) return ended_by_us(end);
    if (exit.timed_out)
        return {Outcome::kFailed, "stopped after its timeout of " +
                                      std::to_string(end.timeout_ms / 1000) + "." +
                                      std::to_string(end.timeout_ms % 1000 / 100) + " s"};
    // Whatever it died of, its GPU had failed.
    if (!end.gpu_fault.empty() && is_failure(exit)) return {Outcome::kLost, end.gpu_fault};
    // What is counted in its own cgroup was one of its own processes, whichever.
    if (exit.oom_kills > 0 && is_failure(exit)) return killed_for_memory(end);
    if (may_be_oom_kill(exit) && end.oom_killed)
        return {Outcome::kOom, "killed by the system because memory ran out"};
    if (exit.signal == 0) return exited(end, exit.exit_code);
    if (exit.signal == SIGABRT && says_out_of_memory(end.err_tail))
        return {Outcome::kOom, with_last_words("out of memory", end)};
    return {Outcome::kFailed, with_last_words("ended by " + signal_text(exit.signal), end)};
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

bool may_run_again(Outcome outcome) {
    return outcome == Outcome::kPreempted || outcome == Outcome::kLost ||
           outcome == Outcome::kOom || outcome == Outcome::kFailed;
}

bool may_be_oom_kill(const ExitRecord& exit) {
    // A shell reports its child's SIGKILL as 137.
    const bool is_by_signal = exit.signal == SIGKILL || exit.exit_code == 128 + SIGKILL;
    return is_by_signal && exit.oom_kills < 0 && !exit.killed;
}

tuner::FinishRequest classify(const AttemptEnd& end) {
    Verdict verdict = verdict_of(end);
    tuner::FinishRequest request;
    request.outcome = verdict.outcome;
    request.reason = std::move(verdict.reason);
    if (!end.exit) return request;
    if (end.exit->exit_code >= 0) request.exit_code = end.exit->exit_code;
    if (end.exit->signal > 0) request.signal = end.exit->signal;
    request.timed_out = end.exit->timed_out && request.outcome == Outcome::kFailed;
    request.max_rss_kb = end.exit->max_rss_kb;
    // The cgroup counts what its processes had at one time; else their largest sizes are added up.
    request.peak_memory_bytes =
        end.exit->memory_peak > 0 ? end.exit->memory_peak : end.exit->peak_kb * 1024;
    const bool is_of_one = request.outcome == Outcome::kFailed || request.outcome == Outcome::kOom;
    if (is_of_one && end.first_rank >= 0 && end.exit->failed_rank >= 0)
        request.reason = "rank " + std::to_string(end.first_rank + end.exit->failed_rank) + ": " +
                         request.reason;
    request.cpu_ms = end.exit->cpu_ms;
    request.wall_ms = end.exit->wall_ms;
    return request;
}

}  // namespace tune::worker
