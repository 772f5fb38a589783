#pragma once
// Trials that run beside others in one process, a pool (docs/pools.md): the processes, and the life
// of each of their trials from its lease to its acknowledged end. All on the agent's loop. Class
// Attempts owns them; what they need of it, they get as PoolHooks.
//
// A pool has a supervisor like any trial, and lives no longer than its agent: its trials come from
// the agent line by line. Of a pool whose agent was killed the next agent reads what it had said to
// the end (pools_adoption.cc); what it was at is given back, and runs again.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "worker/agent/attempts/attempt_parts.h"
#include "worker/agent/pools/pool_lines.h"

namespace tune::worker {

/// What pools need of the table of attempts.
struct PoolHooks {
    /// The trial's checkpoint folder, made, and that of the trial it continues (empty: none).
    std::function<Result<std::pair<std::filesystem::path, std::filesystem::path>>(
        const tuner::Lease&)>
        folders;
    /// Tells the server that a lease was not started. The slot that it took is given back.
    std::function<void(const tuner::Lease&, tuner::Outcome, const std::string&)> refuse;
    /// What a log rule says about an end.
    std::function<void(const LogHit&, const tuner::Lease&, const std::vector<std::string>& gpus,
                       tuner::FinishRequest&)>
        follow_rule;
    std::function<void(const tuner::Lease&, const tuner::FinishRequest&)> ended;
    /// Nobody uses the checkpoint folder any more: if it is empty it goes.
    std::function<void(const std::filesystem::path&)> leave_folder;
    /// Its folder is stored from now on (Attempts::keep_results).
    std::function<void(std::uint64_t serial, const tuner::Lease&,
                       const std::filesystem::path& folder, const AttemptFiles&)>
        begun;
    /// Attempts::report_when_kept; false for `reports`: nobody is told of the end.
    std::function<void(std::uint64_t serial, tuner::FinishRequest, bool reports)> report;
    /// Something has become free.
    std::function<void()> freed;
    std::function<void()> publish;
};

/// Loop thread only.
class Pools {
public:
    /// The references outlive it.
    Pools(const AttemptSettings& settings, const AttemptParts& parts, PoolHooks hooks,
          std::string wake_path, std::vector<std::string> environment);
    ~Pools();
    Pools(const Pools&) = delete;
    Pools& operator=(const Pools&) = delete;

    /// Ends what an earlier agent on the same state_dir left, and reports what it had said.
    void adopt_all();
    /// Such are still there: their trials must not be started beside them.
    [[nodiscard]] bool has_leftovers() const;

    /// Gives the trial to its pool if that runs and has room. False: a process is to be opened.
    [[nodiscard]] bool join(tuner::Lease& lease);
    /// Starts the process for this trial, and those that will join it.
    void open(tuner::Lease lease, Assignment assignment);
    /// Ends processes without trials, since something else wants what they have.
    void end_idle();
    /// No more leases come: processes without trials end, now and from now on.
    void drain();

    [[nodiscard]] bool has(const tuner::AttemptId& id) const;
    /// False: it is none of theirs.
    bool obey(const tuner::AttemptId& id, Intent intent, const std::string& reason);
    void end_all(Intent intent, const std::string& reason, bool at_once);
    void on_gpu_fault(const std::string& uuid, const std::string& fault);

    // As in Attempts. A serial that is none of theirs is ignored.
    void on_wake(std::uint64_t serial) { pump(serial); }
    void wake_all();
    void on_finished(std::uint64_t serial);
    void on_stale(std::uint64_t serial);
    void on_room(std::uint64_t serial);
    void on_uploaded(std::uint64_t serial, bool final);

    void add_counts(AttemptCounts& counts) const;
    void add_held(std::vector<tuner::AttemptId>& ids) const;
    /// Trials that the running processes could take beside those that they have.
    [[nodiscard]] int room() const;
    [[nodiscard]] std::int64_t longest_grace_ms() const;
    [[nodiscard]] bool is_idle() const { return trials_.empty(); }

private:
    struct Pool;
    struct Trial;

    [[nodiscard]] Result<void> prepare(Pool& pool, const tuner::Lease& lease, LaunchSpec& spec);
    [[nodiscard]] std::vector<std::string> pool_environment(const Pool& pool,
                                                            const tuner::Lease& lease) const;
    void add(Pool& pool, tuner::Lease lease);
    void adopt(const std::filesystem::path& folder);
    [[nodiscard]] Trial* adopt_trial(Pool& pool, const tuner::AttemptId& id);
    Trial& enter(Pool& pool, tuner::Lease lease, Result<MetricLines> lines);
    [[nodiscard]] static std::string key_of(const tuner::AttemptId& id);
    void ask_environment(Pool& pool, const tuner::Lease& lease);
    void send(Pool& pool, const std::string& lines);
    void flush(std::uint64_t serial);

    void pump(std::uint64_t serial);
    [[nodiscard]] bool read_chunk(Pool& pool, std::int64_t now);
    void take_line(Pool& pool, std::string_view line, std::int64_t now);
    void take_event(Pool& pool, const PoolEvent& event, std::int64_t now);
    void take_log(Trial& trial, const PoolEvent& event, std::int64_t now);
    void begin(Trial& trial);
    void schedule_upload(Trial& trial);

    void end(Trial& trial, Intent intent, const std::string& reason);
    void await_end(Trial& trial);
    void end_pool(Pool& pool, Intent intent, const std::string& reason, int signal);
    void retire(Pool& pool);
    void on_idle(Pool& pool);
    void on_gone(std::uint64_t serial);
    void sweep(std::uint64_t serial);
    void settle(Pool& pool);
    [[nodiscard]] tuner::FinishRequest lost_with(const Pool& pool, const Trial& trial,
                                                 bool is_suspect) const;
    [[nodiscard]] tuner::FinishRequest request_of(const Pool& pool, const Trial& trial,
                                                  const ExitRecord& exit,
                                                  const std::string& last_words) const;
    void conclude(Pool& pool, Trial& trial, tuner::FinishRequest request);
    void forget_if_done(std::uint64_t serial);
    void remove_if_reported(std::uint64_t pool, const AttemptFiles& files) const;

    [[nodiscard]] Pool* find_pool(std::uint64_t serial);
    [[nodiscard]] Trial* find_trial(std::uint64_t serial);
    [[nodiscard]] Trial* find_trial(const tuner::AttemptId& id);

    const AttemptSettings& settings_;
    const AttemptParts& parts_;
    const PoolHooks hooks_;
    const std::string wake_path_;
    const std::vector<std::string> environment_;
    std::map<std::uint64_t, std::unique_ptr<Pool>> pools_;
    std::unordered_map<std::uint64_t, std::unique_ptr<Trial>> trials_;
    std::unordered_map<std::string, std::uint64_t> by_id_;  // "run/attempt" of `trials_`
    bool is_draining_ = false;
    std::int64_t started_ = 0;
    std::int64_t finished_ = 0;
};

}  // namespace tune::worker
