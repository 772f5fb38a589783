#pragma once
// The agent: takes trials from a server and runs each as a process of this machine. `tune agent`
// is this class and a signal handler; `tune run` embeds it beside its server.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tuner/log_rule.h"
#include "tuner/protocol.h"

namespace tune::worker {

/// Whether a GPU may be given to a trial while processes of somebody else compute on it.
enum class ForeignUse {
    kIgnore,  // yes; that they are there is logged
    kAvoid,   // no: it is waited until they are gone
};

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
    /// GPUs, or slices of such (MIG), to hand out, by UUID or position. Empty: all. Always within
    /// CUDA_VISIBLE_DEVICES, and without those that other agents of this machine have.
    std::vector<std::string> gpus = {};
    /// At most so many of them.
    std::optional<int> gpus_max = {};
    /// Of `gpus` by UUID what the driver does not say, above all where there is no driver.
    std::vector<tuner::GpuFacts> gpu_facts = {};
    /// Memory that trials may use together. 0: all of the machine's.
    std::int64_t memory_bytes = 0;
    /// Words by which studies choose agents; "topology=..." names a fast connection.
    std::vector<std::string> labels = {};
    /// Where other machines reach this one. Empty: the address that leads to the server.
    std::string address = {};
    /// False: hand out no GPU, and do not look for any.
    bool use_gpus = true;
    ForeignUse foreign_use = ForeignUse::kIgnore;
    /// GPUs are looked at so often where the driver does not announce what happens to them.
    int gpu_period_ms = 5'000;
    /// The driver's library. Empty: libnvidia-ml.so.1.
    std::string gpu_library = {};
    /// Where each attempt gets a cgroup (version 2) of its own, with limits that the kernel
    /// enforces: a delegated empty folder of the cgroup file system; "auto": the agent's own
    /// cgroup, if it is alone in it; "off": none, processes are bounded by their group only.
    std::string cgroup = "off";
    /// Limits of an attempt where it has a cgroup: memory, if the study names none, and processes.
    /// 0: none.
    std::int64_t trial_memory_bytes = 0;
    std::int64_t trial_processes = 0;
    /// What lines of a trial's output say about its failure, after the rules of its study. Those
    /// for damaged GPUs (gpu_log_rules) always follow.
    std::vector<tuner::LogRule> log_rules = {};
    /// First in every trial's PATH. Empty: the folder of the running program.
    std::filesystem::path bin_dir = {};
    /// Root of the trials' TUNE_CHECKPOINT_DIR. Empty: `state_dir`/checkpoints.
    std::filesystem::path checkpoint_root = {};
    /// What a study's `checkpoints: {store: auto}` means here: the run's artifacts, or nothing but
    /// this machine.
    bool stores_checkpoints = true;
    /// How long the end of an attempt waits until its last checkpoint is stored.
    int checkpoint_deadline_ms = 120'000;
    /// Tell the runs which code, command, versions, devices and data they were made with.
    bool capture_environment = true;
    /// Log MLflow's system/... metrics for trials that live longer than one period.
    bool system_metrics = true;
    int system_metrics_period_ms = 10'000;
    /// Log files are uploaded while they grow at most this often, and whole at the end.
    int log_upload_period_ms = 3'000;
    /// When the server has not answered for its lease ttl plus this time, trials are stopped.
    int away_grace_ms = 20'000;
    /// The agent drains and ends when it has had no trial for so long. 0: never.
    std::int64_t idle_exit_ms = 0;
    /// The agent has ended so long after its start, as a job of a batch system has to. It takes no
    /// more trials when what is left is shorter than they take (the ninth of ten that have ended
    /// here), and stops those that run (StopMode::kStop) early enough for the longest grace time of
    /// theirs and for the delivery of what they left. 0: never.
    std::int64_t time_limit_ms = 0;
};

/// What the agent does at a moment.
struct AgentStatus {
    bool connected = false;  // the last call to the server was answered
    bool draining = false;   // no new trials are taken
    bool stopping = false;   // for good, by whoever; it has ended when nothing runs any more
    int slots = 0;
    int running = 0;  // attempts whose processes are alive
    /// GPUs that are not used any more, or "this machine", each with the reason.
    std::vector<std::string> excluded = {};
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
