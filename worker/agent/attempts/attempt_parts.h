#pragma once
// What single attempts and those in pools have in common: what they are run with, the parts of the
// agent that they use, and what follows from a lease for both.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tuner/protocol.h"
#include "worker/agent/attempts/attempt_files.h"
#include "worker/agent/attempts/gang_ports.h"
#include "worker/agent/checkpoints/checkpoint_transfer.h"
#include "worker/agent/devices/cgroups.h"
#include "worker/agent/devices/devices.h"
#include "worker/agent/devices/gpu_watch.h"
#include "worker/agent/environment/run_environment.h"
#include "worker/agent/loop.h"
#include "worker/agent/output/log_rules.h"
#include "worker/agent/server/log_upload.h"
#include "worker/agent/server/outbox.h"
#include "worker/agent/server/server_client.h"
#include "worker/agent/supervisor/launcher.h"

namespace tune::worker {

/// What attempts are run with; constant.
struct AttemptSettings {
    std::string server_url;
    std::filesystem::path state_dir;  // absolute
    std::filesystem::path checkpoint_root;
    std::filesystem::path checkpoint_state;  // of folder_record.h
    std::string bin_dir;
    int slots = 1;
    bool system_metrics = true;
    int system_metrics_period_ms = 10'000;
    int log_upload_period_ms = 3'000;
    std::int64_t trial_memory_bytes = 0;  // limits in the attempt's cgroup; 0: none
    std::int64_t trial_processes = 0;
    bool stores_checkpoints = true;  // where the study leaves it open
    int checkpoint_deadline_ms = 120'000;
    std::vector<tuner::LogRule> log_rules = {};  // after those of the studies
    std::vector<GpuFacts> gpus = {};             // what is known of the agent's
    std::string driver_version = {};
};

/// The parts of the agent that attempts use; all outlive Attempts.
struct AttemptParts {
    Loop* loop = nullptr;
    Launcher* launcher = nullptr;
    Devices* devices = nullptr;
    GpuWatch* gpu_watch = nullptr;     // null: no GPU
    const Cgroups* cgroups = nullptr;  // null: there are none
    EnvironmentCapture* environment = nullptr;
    GangPorts* gang_ports = nullptr;
    ServerClient* server_client = nullptr;
    Outbox* outbox = nullptr;
    LogUpload* upload = nullptr;
    CheckpointTransfer* transfer = nullptr;
    /// A GPU is not to be used any more, or, with an empty UUID, this machine.
    std::function<void(const std::string& uuid, const std::string& reason)> exclude = {};
};

struct AttemptCounts {
    int running = 0;     // process trees alive
    int unreported = 0;  // gone, but the server or the artifacts do not have all of it yet
    std::int64_t started = 0;
    std::int64_t finished = 0;
    int storing = 0;  // of the unreported: their last checkpoint is being stored
};

class CheckpointFolders;
class EnvironmentQuestions;
class KeptResults;
class TrialDurations;

/// What single attempts and pools share besides: parts of Attempts, which outlive both.
struct SharedParts {
    const AttemptSettings& settings;
    const AttemptParts& agent;
    CheckpointFolders& checkpoint_folders;
    KeptResults& results;
    EnvironmentQuestions& environments;
    TrialDurations& durations;
    std::string wake_path;                 ///< of the FIFO by which supervisors announce output
    std::vector<std::string> environment;  ///< this agent's own
    std::function<void()> freed;           ///< devices or a slot have become free
    std::function<void()> publish;         ///< what is held or counted has changed
};

/// "trial 3 of study 's'", for messages.
[[nodiscard]] std::string short_name(const tuner::Lease& lease);

/// What did not start for this reason: the user's fault, or this machine's.
[[nodiscard]] tuner::Outcome outcome_of_failed_start(const Error& error);

/// Of the process tree of a lease; 0: no limit.
[[nodiscard]] CgroupLimits limits_of(const tuner::Lease& lease, const AttemptSettings& settings);

/// The study's, then the agent's, then those for GPUs if it has any. Errors: those of
/// LogRules::create.
[[nodiscard]] Result<LogRules> log_rules_of(const tuner::Lease& lease,
                                            const AttemptSettings& settings, bool has_gpus);

}  // namespace tune::worker
