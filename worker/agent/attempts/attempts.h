#pragma once
// The life of each attempt on this machine, from its lease to its end being acknowledged. All of it
// runs on the agent's loop; nothing here waits for the network.
//
//   leased -> (checkpoint fetched) -> (waiting for devices) -> running -> tree gone
//          -> output read to its end -> (model logged) -> (checkpoint stored) -> end sent (outbox),
//          logs sent (upload) -> forgotten

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/agent/attempts/attempt_parts.h"
#include "worker/agent/attempts/spare_folders.h"
#include "worker/agent/checkpoints/checkpoint_fetches.h"
#include "worker/agent/checkpoints/checkpoint_folders.h"
#include "worker/agent/checkpoints/checkpoint_saves.h"
#include "worker/agent/devices/system_metrics.h"
#include "worker/agent/models/model_logging.h"
#include "worker/agent/time_limit.h"

namespace tune::worker {

class Pools;

/// Loop thread only.
class Attempts {
public:
    /// `changed` is called after the counts have changed.
    Attempts(AttemptSettings settings, AttemptParts parts, std::function<void()> changed);
    ~Attempts();
    Attempts(const Attempts&) = delete;
    Attempts& operator=(const Attempts&) = delete;

    /// Opens the FIFO through which supervisors announce output. Errors: kInternalError.
    [[nodiscard]] Result<void> open_wake_fifo();
    /// Takes over what an earlier agent left in state_dir.
    void adopt_all();

    void start(std::vector<tuner::Lease> leases);
    void obey(const tuner::Directive& directive);
    void lose(const tuner::AttemptId& id);
    /// Ends all (SIGTERM, or with `at_once` SIGKILL) for `intent`.
    void end_all(Intent intent, const std::string& reason, bool at_once);

    /// A GPU is not to be used any more: attempts that have it end and are run again.
    void on_gpu_fault(const std::string& uuid, const std::string& fault);
    /// Something may have become free otherwise than by the end of an attempt.
    void on_devices_changed();
    /// No more leases come.
    void drain();

    // What the outbox and the upload report; a serial that is gone is ignored.
    void on_finished(std::uint64_t serial);
    void on_stale(std::uint64_t serial);
    void on_room(std::uint64_t serial);
    void on_uploaded(std::uint64_t serial, bool final, bool uploaded);
    void on_checkpoint(const CheckpointJob& job, const CheckpointResult& result);

    [[nodiscard]] AttemptCounts counts() const;
    /// Nothing runs, waits or has to be reported.
    [[nodiscard]] bool is_idle() const;
    /// Of the attempts that run; 0: none.
    [[nodiscard]] std::int64_t longest_grace_ms() const;
    /// See TrialDurations.
    [[nodiscard]] std::int64_t expected_ms() const { return durations_.expected_ms(); }
    /// Attempts whose leases must be kept: running ones and those whose end is not reported yet.
    [[nodiscard]] std::vector<tuner::AttemptId> held() const;

private:
    struct Attempt;
    enum class Adoption { kRunning, kEnded, kNothing };

    void begin(tuner::Lease lease);
    void on_fetched(tuner::Lease lease, const CheckpointResult& result);
    /// Of those that have not been started.
    [[nodiscard]] std::vector<tuner::AttemptId> unstarted() const;
    [[nodiscard]] std::optional<tuner::Lease> take_unstarted(const tuner::AttemptId& id);
    /// From now on what it leaves, checkpoints and a model, is kept beyond this machine.
    void keep_results(std::uint64_t serial, const tuner::Lease& lease,
                      const std::filesystem::path& folder, const AttemptFiles& files);
    /// Calls `report` at once, or when what the attempt left is kept.
    void report_when_kept(std::uint64_t serial, tuner::FinishRequest request,
                          CheckpointSaves::Report report);
    void forget_results(std::uint64_t serial);
    void report_end(Attempt& attempt, tuner::FinishRequest request);
    void start_waiting();
    void await_core();
    void launch(tuner::Lease lease, Assignment assignment);
    [[nodiscard]] Result<LogRules> rules_of(const Attempt& attempt) const;
    void follow_rule(const Attempt& attempt, tuner::FinishRequest& request);
    void follow_rule(const LogHit& hit, const tuner::Lease& lease,
                     const std::vector<std::string>& gpus, tuner::FinishRequest& request);
    [[nodiscard]] std::unique_ptr<Pools> make_pools();
    [[nodiscard]] CgroupLimits limits_of(const tuner::Lease& lease) const;
    [[nodiscard]] Result<int> take_ports(tuner::Lease& lease);
    /// What reads the output: of several machines only the first one's counts.
    [[nodiscard]] static Result<MetricLines> metric_lines(const tuner::Lease& lease);
    /// Below the run's logs/: of several machines each but the first has a folder.
    [[nodiscard]] static std::string log_folder(const tuner::Lease& lease);
    /// What the trial says itself of its GPUs' memory.
    static void note_told_peak(Attempt& attempt, const LineFindings& findings);
    void watch_gpu_memory(Attempt& attempt);
    void look_at_gpu_memory(std::uint64_t serial);
    [[nodiscard]] Result<void> prepare(Attempt& attempt, LaunchSpec& spec);
    void refuse(const tuner::Lease& lease, tuner::Outcome outcome, const std::string& reason);
    Attempt& insert(std::unique_ptr<Attempt> attempt);
    Attempt* find(const tuner::AttemptId& id);
    [[nodiscard]] bool holds(const tuner::AttemptId& id);
    Attempt* find(std::uint64_t serial);

    Adoption adopt(const std::filesystem::path& directory);
    void resume_output(Attempt& attempt);
    void watch(Attempt& attempt);

    void on_wake();
    /// What attempts have to say in this turn of the loop goes in one report.
    void gather();
    void pump(std::uint64_t serial);
    void schedule_upload(Attempt& attempt);
    void schedule_system_metrics(Attempt& attempt);
    void sample_system_metrics(std::uint64_t serial);
    void send_system_metrics(std::uint64_t serial, std::vector<NamedValue> values);

    void capture_environment(Attempt& attempt);
    void on_environment(std::uint64_t serial, RunEnvironment environment);

    void note_used_gpus(const Assignment& more);
    void read_first(const Attempt& attempt);
    void on_first_reading(std::uint64_t serial, const GpuWatch::Readings& readings);
    void read_last(Attempt& attempt);
    void on_last_reading(std::uint64_t serial, const GpuWatch::Readings& readings);
    void sample_gpus(const Attempt& attempt);
    [[nodiscard]] double energy_share(const Attempt& attempt) const;
    static void pass_on_profile(const Attempt& attempt, const tuner::Directive& directive);
    void end(Attempt& attempt, Intent intent, const std::string& reason, int signal);

    void on_supervisor_gone(std::uint64_t serial);
    void sweep(std::uint64_t serial);
    void on_tree_gone(Attempt& attempt);
    void conclude_if_known(Attempt& attempt);
    void conclude(Attempt& attempt);
    [[nodiscard]] static std::string last_words(const Attempt& attempt);
    void fail_without_output(const Attempt& attempt, tuner::FinishRequest& request) const;
    void write_notes(const Attempt& attempt, const tuner::FinishRequest& request) const;
    void send_logs(Attempt& attempt, const tuner::FinishRequest& request);
    void forget_if_done(std::uint64_t serial);
    /// What is held and free has changed: told to the others once a turn of the loop.
    void publish();
    void publish_now();

    const AttemptSettings settings_;
    const AttemptParts parts_;
    const std::function<void()> changed_;
    const std::vector<std::string> environment_;
    const std::string boot_id_;
    const std::string wake_path_;
    const bool has_gpu_each_;  // of the slots, at the start
    SpareFolders spare_folders_;
    CheckpointFolders checkpoint_folders_;
    CheckpointFetches fetches_;
    CheckpointSaves saves_;
    ModelLogging models_;
    bool is_publishing_ = false;                  // at the end of this turn
    std::optional<Outbox::Gathering> gathering_;  // until the end of this turn
    UniqueFd wake_;
    std::map<std::uint64_t, std::unique_ptr<Attempt>> attempts_;
    std::deque<tuner::Lease> waiting_;                       // for devices
    std::map<std::string, std::vector<std::string>> notes_;  // of fetched ones, by run
    UniqueFd core_news_;                                     // another agent lets go of a core
    TrialDurations durations_;
    std::int64_t started_ = 0;
    std::int64_t finished_ = 0;
    const std::unique_ptr<Pools> pools_;  // last: it uses the rest
};

}  // namespace tune::worker
