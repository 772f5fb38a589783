#pragma once
// What an attempt leaves on the disk, so that a later agent can take it over:
//
//   <state_dir>/attempts/<run_id>-<attempt>/
//     attempt.json   the lease and what was given to it; written before the supervisor starts
//     owner          made by the supervisor (supervisor.h); no owner: it never came up
//     intent.json    why this agent ended it, if it did
//     progress.json  how far its metrics were sent and acknowledged; the last line counts
//     energy.json    the counters of its GPUs when it began
//     stdout.log, stderr.log, agent.log, exit.json, git.diff
//
// Files are not synced: they protect against the agent's death. After a crash of the machine the
// processes are gone too, and the attempt is lost whatever the files say.

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tuner/protocol.h"
#include "worker/agent/output/trial_output.h"
#include "worker/agent/supervisor/supervisor.h"

namespace tune::worker {

inline constexpr const char* kAgentLogFile = "agent.log";
inline constexpr const char* kProgressFile = "progress.json";
/// What its code differs by from the commit in its run's tags; absent if it does not.
inline constexpr const char* kDiffFile = "git.diff";
/// "TURN STEPS", whole once it is there: a trace of so many steps is wanted, see docs/agents.md.
inline constexpr const char* kProfileRequestFile = "profile.request";
/// The folder whose files become artifacts of the run, when a line names them or the attempt has
/// ended.
inline constexpr const char* kArtifactFolder = "artifacts";

/// Names an attempt, a pool or a transfer within this agent; at random, so that an earlier agent's
/// are others.
[[nodiscard]] std::uint64_t new_serial();

/// Everything about an attempt that is decided before it starts.
struct AttemptRecord {
    std::uint64_t serial = 0;  // unique among the attempts of a state_dir
    tuner::Lease lease;
    std::string server_url;
    std::string finish_request_id;
    std::string boot_id;
    std::int64_t started_ms = 0;  // of Loop::now_ms, which goes on within a boot
    std::int64_t oom_kills = 0;   // the machine's count of OOM kills at the start
    std::vector<int> cores;       // assigned; empty: shared
    std::vector<std::string> gpus;

    [[nodiscard]] tuner::AttemptId id() const { return lease.id(); }
};

/// Why the agent ends an attempt.
enum class Intent {
    kNone,
    kPrune,           // directive
    kStop,            // directive
    kCheckpointStop,  // directive
    kLost,            // the server says that it is not ours any more
    kShutdown,        // the agent stops
    kAway,            // the server has not answered for too long
    kMoved,           // adopted from an agent of another server address
    kGpuFault,        // a GPU that it has cannot be used any more
};
struct IntentRecord {
    Intent intent = Intent::kNone;
    std::string reason = {};
};

/// How the supervisor says it ended (exit.json).
struct ExitRecord {
    int exit_code = -1;  // -1: a signal, or never started
    int signal = 0;
    StartStep failed_step = StartStep::kNone;
    int failed_errno = 0;
    bool stopped = false;    // asked to end by the agent before it ended by itself
    bool timed_out = false;  // ended for its time-out
    bool killed = false;     // SIGKILL was needed
    bool swept = false;      // it left processes behind, which were ended
    int failed_rank = -1;    // of several processes on this machine the first that failed
    std::int64_t max_rss_kb = 0;
    std::int64_t peak_kb = 0;  // the largest sizes of all its processes together
    std::int64_t cpu_ms = 0;
    std::int64_t wall_ms = 0;
    std::int64_t end_ms = 0;                          // wall clock
    std::array<std::int64_t, 2> lost_bytes = {0, 0};  // output that could not be stored
    // Of its cgroup:
    std::int64_t memory_peak = 0;  // bytes of all its processes together; 0: unknown
    std::int64_t oom_kills = -1;   // processes killed for want of memory; -1: it had no cgroup
};

/// A stretch of output that has been sent but not yet acknowledged.
struct SentStretch {
    std::array<std::int64_t, 2> end = {0, 0};
    std::int64_t timestamp_ms = 0;
};
struct ProgressRecord {
    OutputPosition acknowledged;
    std::vector<SentStretch> sent;
};

/// The owner (kOwnerLink).
struct Owner {
    int pid = 0;  // 0: taken by an agent; nothing was ever started
    std::int64_t start_time = 0;
};

/// The folder of one attempt. Errors of all: kInternalError with path and reason. Different files
/// may be written from different threads.
class AttemptFiles {
public:
    explicit AttemptFiles(std::filesystem::path directory) : directory_(std::move(directory)) {}
    [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }
    [[nodiscard]] std::filesystem::path path(const char* name) const { return directory_ / name; }

    /// Makes the folder with attempt.json, for its owner's eyes only and without secrets: the
    /// lease's token and variables are left out. Only the trial's own processes need them, which
    /// have them; who takes the attempt over starts nothing.
    [[nodiscard]] Result<void> create(const AttemptRecord& record) const;
    [[nodiscard]] Result<AttemptRecord> read_record() const;

    [[nodiscard]] Result<void> write_intent(const IntentRecord& intent) const;
    [[nodiscard]] IntentRecord read_intent() const;  // kNone if there is none

    [[nodiscard]] Result<void> write_progress(const ProgressRecord& progress) const;
    [[nodiscard]] ProgressRecord read_progress() const;  // the beginning if there is none

    /// Absent: the supervisor has not written it (yet, or ever).
    [[nodiscard]] std::optional<ExitRecord> read_exit() const;

    /// Reads the owner; if there is none, takes the attempt, so that a supervisor that is about to
    /// come up will not start it.
    [[nodiscard]] Result<Owner> read_or_take_ownership() const;

    /// Appends a line, with the time, to agent.log: what the agent has to say to the user.
    void note(std::string_view text) const;

    void remove() const;

    /// Empties the folder for another attempt, and keeps what can serve it: attempt.json, which the
    /// next one's replaces, and empty files under the names that supervisor.h gives them. False: it
    /// holds more than that, and is to be removed.
    [[nodiscard]] bool clear() const;

private:
    std::filesystem::path directory_;
};

constexpr std::size_t kTailBytes = 64u << 10;  ///< of an output: where its end is looked for

/// The last kTailBytes of a file; nothing where it cannot be read.
[[nodiscard]] std::string tail_of(const std::filesystem::path& path);

/// This boot of the machine; empty where the system does not say.
[[nodiscard]] std::string current_boot_id();

/// Processes killed for want of memory so far: by this cgroup's count, else by the machine's.
[[nodiscard]] std::int64_t count_oom_kills();

}  // namespace tune::worker
