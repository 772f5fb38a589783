#pragma once
// An attempt of several processes on this machine. The supervisor's trial is then a leader, a copy
// of the supervisor in a session and process group of its own, which starts the processes into its
// group: a signal to the group reaches all of them at one moment. The leader waits for them; the
// first that fails ends the rest, and the leader ends as that one did. On the machine with rank 0
// it also keeps the rendezvous of Horovod's processes (rendezvous.h).

#include <cstdint>

#include "worker/agent/supervisor/supervisor.h"

namespace tune::worker {

/// The processes of an attempt, as kRanksFile lists them.
struct Ranks {
    int count = 0;                   ///< 0: the attempt is one process, without a leader
    const char** outputs = nullptr;  ///< where the output of each goes but the first's
    char*** variables = nullptr;     ///< of each, beside the common ones; ends with nullptr
};

/// What the leader tells the supervisor, in memory that both share.
struct RankReport {
    int failed_rank = -1;  ///< counted on this machine; the first that did not end well
    int failed_step = 0;   ///< StartStep, of a process that could not be started
    int failed_errno = 0;
    std::int64_t peak_kb = 0;  ///< largest resident sets of all processes together
};

struct LeaderSettings {
    char** command = nullptr;
    const char* working_dir = nullptr;
    const char* cores = nullptr;
    std::int64_t grace_ms = 0;
    /// Pipes: stdout and stderr of the first process, then one of each further one.
    const int* outputs = nullptr;
};

/// Reads kRanksFile in the folder; count 0 if there is none. Count below 0: it cannot be used.
[[nodiscard]] Ranks read_ranks(int directory);

/// `word` as it stands before the command: with kWithAgent this process gets SIGTERM when the
/// thread that started it ends. False: that has happened already.
[[nodiscard]] bool follow_agent(const char* word);

/// Opens the file of an output for its first byte; -1: it cannot be made, errno says why.
[[nodiscard]] int open_output(int directory, const char* name);

/// In memory that a fork shares. nullptr: there is none left.
[[nodiscard]] RankReport* new_rank_report();

/// In a fork of the supervisor: starts the processes, waits for them, and ends as they did.
[[noreturn]] void lead_ranks(const Ranks& ranks, const LeaderSettings& settings,
                             RankReport& report);

}  // namespace tune::worker
