#pragma once
// From how a process ended to what is reported to the server. Pure. The table is in
// docs/agents.md.

#include <optional>
#include <string>
#include <string_view>

#include "tuner/protocol.h"
#include "worker/agent/attempts/attempt_files.h"

namespace tune::worker {

/// What is known when an attempt has ended.
struct AttemptEnd {
    std::optional<ExitRecord> exit;  // absent: the supervisor itself was killed
    IntentRecord intent;
    std::vector<std::string> command;
    std::string search_path;  // the trial's PATH, for the message
    std::string working_dir;
    std::int64_t timeout_ms = 0;
    bool oom_killed = false;  // the machine killed a process for want of memory meanwhile
    std::int64_t memory_limit_bytes = 0;  // of its cgroup; 0: none
    std::string gpu_fault;                // of a GPU that it had; empty: none
    int first_rank = -1;        // of several processes: the rank of the first on this machine
    std::string_view out_tail;  // last part of stdout and stderr
    std::string_view err_tail;
};

/// The finish request without its request id.
[[nodiscard]] tuner::FinishRequest classify(const AttemptEnd& end);

/// Whether another attempt of the trial may follow.
[[nodiscard]] bool may_run_again(tuner::Outcome outcome);

/// Whether the machine may have ended it for want of memory, as far as its exit tells; what the
/// machine counted (AttemptEnd::oom_killed) decides.
[[nodiscard]] bool may_be_oom_kill(const ExitRecord& exit);

/// True if the text holds the words with which a known library reports that memory ran out.
[[nodiscard]] bool says_out_of_memory(std::string_view text);

}  // namespace tune::worker
