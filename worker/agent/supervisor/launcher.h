#pragma once
// Starts supervisors (tune-supervisor), signals them, and finds what a dead one left behind.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/system/unique_fd.h"

namespace tune::worker {

/// Arguments of one supervisor; see supervisor.h.
struct LaunchSpec {
    std::string directory;
    std::string wake_fifo;
    std::uint64_t serial = 0;
    std::int64_t grace_ms = 0;
    std::int64_t timeout_ms = 0;
    std::vector<int> cores;   // empty: all
    std::string working_dir;  // empty: the agent's own
    std::string cgroup;       // folder of the trial's cgroup; empty: none
    std::vector<std::string> command;
    std::vector<std::string> environment;  // "NAME=value"
    /// Descriptors of this process that the supervisor, and not the trial, keeps until it ends.
    std::vector<int> inherited = {};
    int input = -1;           // the trial's standard input; -1: none
    bool with_agent = false;  // it ends when the calling thread does
};

/// A process by number and descriptor; the descriptor is what is waited for and signalled, so a
/// number that the system gives to another process later does no harm.
struct Process {
    int pid = -1;
    UniqueFd pidfd;
};

/// Stateless but for the image; any thread.
class Launcher {
public:
    /// Errors: kInternalError when the supervisor's image cannot be placed in memory.
    [[nodiscard]] static Result<Launcher> create();

    /// Starts a supervisor in a session of its own. The caller's memory is not copied (vfork), so
    /// the cost, about 0.5 ms, does not grow with the caller. Errors: kResourceExhausted (limit of
    /// processes, descriptors or memory), kInternalError.
    [[nodiscard]] Result<Process> start(const LaunchSpec& spec) const;

private:
    explicit Launcher(UniqueFd image) : image_(std::move(image)) {}
    UniqueFd image_;  // memfd with the program
};

/// The process `pid` if it is the one that began at `start_time` (field 22 of /proc/PID/stat).
/// Errors: kResourceDoesNotExist.
[[nodiscard]] Result<Process> find_process(int pid, std::int64_t start_time);

/// Sends `signal`; a process that has ended is ignored.
void signal_process(const Process& process, int signal);

/// Reaps the process if it is a child of this one; see pidfd_open(2) for when to call.
void reap_process(const Process& process);

/// All processes whose environment has this "NAME=value". Needed only when a supervisor was killed;
/// a scan of /proc, about 20 us a process of the machine.
[[nodiscard]] std::vector<Process> find_processes_with(const std::string& assignment);
/// Those of an attempt (MLFLOW_RUN_ID and TUNE_ATTEMPT).
[[nodiscard]] std::vector<Process> find_marked_processes(const std::string& run_id, int attempt);

}  // namespace tune::worker
