#pragma once
// The agent: takes trials from a server and runs each as a process of this machine. `tune agent`
// is this class and a signal handler; `tune run` embeds it beside its server.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace tune::worker {

struct AgentOptions {
    /// The server, e.g. "http://127.0.0.1:5000". Trials get it as MLFLOW_TRACKING_URI.
    std::string server_url;
    /// Where the agent keeps its id, the state of its attempts, local logs and checkpoints. One
    /// agent a folder; a later agent on the same folder adopts what the earlier one left running.
    std::filesystem::path state_dir;
    /// Trials at a time. 0: one a GPU where there are GPUs, else one a core.
    int slots = 0;
    /// Cores this agent may hand out. 0: all that the process may use (its affinity mask).
    int cpus = 0;
    /// UUIDs of the GPUs to hand out. Empty: those NVML lists, within CUDA_VISIBLE_DEVICES.
    std::vector<std::string> gpus = {};
    /// False: hand out no GPU, and do not look for any.
    bool use_gpus = true;
    /// First in every trial's PATH. Empty: the folder of the running program.
    std::filesystem::path bin_dir = {};
    /// Root of the trials' TUNE_CHECKPOINT_DIR. Empty: `state_dir`/checkpoints.
    std::filesystem::path checkpoint_root = {};
    /// Log MLflow's system/... metrics for trials that live longer than one period.
    bool system_metrics = true;
    int system_metrics_period_ms = 10'000;
    /// Log files are uploaded while they grow at most this often, and whole at the end.
    int log_upload_period_ms = 3'000;
    /// When the server has not answered for its lease ttl plus this time, trials are stopped.
    int away_grace_ms = 20'000;
};

/// What the agent does at a moment.
struct AgentStatus {
    bool connected = false;  // the last call to the server was answered
    bool draining = false;   // no new trials are taken
    int slots = 0;
    int running = 0;           // attempts whose processes are alive
    int unreported = 0;        // ended attempts that the server has not acknowledged yet
    std::int64_t started = 0;  // since this agent started, adopted ones included
    std::int64_t finished = 0;
    std::string last_error =
        {};  // the latest error of the server or the way to it; empty when connected
};

/// How `stop` treats the trials that are running.
enum class StopMode {
    kDrain,   // take no more, let the running ones end
    kStop,    // SIGTERM, grace, SIGKILL; the attempts end as preempted, and are run again
    kKill,    // SIGKILL at once; the attempts end as preempted
    kDetach,  // leave them running; the next agent on the same state_dir adopts them
};

/// Lifecycle: create, start, (stop), wait, destroy. Threads: all methods from any thread. Start-up
/// registers with the server in the background: a server that is away is waited for, not an error.
///
/// What holds while it runs:
/// - an attempt's process tree is gone before its slot is free again;
/// - metrics of an attempt arrive in the order of its output, before its end is reported;
/// - an end is reported until the server has acknowledged it, also by a later agent on the same
///   state_dir, and exactly once (the server ignores repeats by request id);
/// - output never blocks a trial for the network: it goes to local files first.
class Agent {
public:
    /// Locks and prepares `state_dir`, finds cores and GPUs. Errors, each naming what to do:
    /// kInvalidParameterValue (an option), kPermissionDenied or kInternalError (state_dir cannot
    /// be written), kResourceAlreadyExists (another agent runs on this state_dir).
    [[nodiscard]] static Result<std::unique_ptr<Agent>> create(AgentOptions options);

    /// As stop(kStop) and wait().
    ~Agent();
    Agent(const Agent&) = delete;
    Agent& operator=(const Agent&) = delete;

    /// Called after each change of the status, on the agent's own thread: it must not block and
    /// must not call stop or wait. Set before start.
    void on_status(std::function<void(const AgentStatus&)> callback);

    /// Starts the threads, adopts what an earlier agent left, registers and begins to take trials.
    /// Errors: kInternalError if the system refuses threads or descriptors.
    [[nodiscard]] Result<void> start();

    /// Begins to stop; returns at once. A second call may only go further (drain -> stop -> kill).
    void stop(StopMode mode);

    /// Waits until a stop has been asked for and is complete: processes gone (unless detached),
    /// metrics, logs and ends delivered. Delivery is given up after `deliver_ms` without a server;
    /// the state on disk then lets the next agent deliver. False: given up.
    bool wait(int deliver_ms = 10'000);

    [[nodiscard]] AgentStatus status() const;
    [[nodiscard]] const std::string& id() const;

private:
    class Impl;
    explicit Agent(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace tune::worker
