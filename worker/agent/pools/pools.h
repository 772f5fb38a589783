#pragma once
// Trials that run beside others in one process, a pool (docs/pools.md): the processes, and the life
// of each of their trials from its lease to its acknowledged end.
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
#include <vector>

#include "worker/agent/attempts/attempt_parts.h"
#include "worker/agent/pools/pool.h"
#include "worker/agent/pools/pool_lines.h"
#include "worker/agent/pools/pool_trials.h"

namespace tune::worker {

/// Loop thread only.
class Pools {
public:
    /// Tells the server that a lease was not started. The slot that it took is given back.
    using Refuse =
        std::function<void(const tuner::Lease&, tuner::Outcome, const std::string& reason)>;

    /// `shared` outlives it.
    Pools(const SharedParts& shared, Refuse refuse);
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

    [[nodiscard]] bool has(const tuner::AttemptId& id) const { return trials_.has(id); }
    /// False: it is none of theirs.
    bool obey(const tuner::AttemptId& id, Intent intent, const std::string& reason);
    void end_all(Intent intent, const std::string& reason, bool at_once);
    void on_gpu_fault(const std::string& uuid, const std::string& fault);

    // As in Attempts. A serial that is none of theirs is ignored.
    /// There may be lines of this pool.
    void pump(std::uint64_t serial);
    void pump_all();
    void on_finished(std::uint64_t serial);
    void on_stale(std::uint64_t serial);
    void on_room(std::uint64_t serial);
    void on_uploaded(std::uint64_t serial, bool final);

    void add_counts(AttemptCounts& counts) const;
    void add_held(std::vector<tuner::AttemptId>& ids) const { trials_.add_held(ids); }
    /// Trials that the running processes could take beside those that they have.
    [[nodiscard]] int room() const;
    [[nodiscard]] std::int64_t longest_grace_ms() const;
    [[nodiscard]] bool is_idle() const { return trials_.is_empty(); }

private:
    [[nodiscard]] Pool* find_pool(std::uint64_t serial) const;
    [[nodiscard]] std::unique_ptr<Pool> make_pool(std::uint64_t serial);
    void ask_environment(Pool& pool);
    void mark_used_gpus();
    PoolTrial& enter(Pool& pool, tuner::Lease lease, Result<MetricLines> lines);
    void add(Pool& pool, tuner::Lease lease);
    void adopt(const std::filesystem::path& folder);
    [[nodiscard]] PoolTrial* adopt_trial(Pool& pool, const tuner::AttemptId& id);

    void take_event(Pool& pool, const PoolEvent& event, std::int64_t now);
    void take_log(PoolTrial& trial, const PoolEvent& event, std::int64_t now);
    void begin(Pool& pool, PoolTrial& trial);

    void end(PoolTrial& trial, Intent intent, const std::string& reason);
    void await_end(PoolTrial& trial);
    void end_pool(Pool& pool, Intent intent, const std::string& reason, int signal);
    void retire(Pool& pool);
    void on_idle(Pool& pool);
    void settle(Pool& pool);
    void conclude(Pool& pool, PoolTrial& trial, tuner::FinishRequest request);
    void forget_if_done(const PoolTrial& trial);
    void remove_if_reported(std::uint64_t pool, const AttemptFiles& files) const;

    const SharedParts& shared_;
    const AttemptParts& agent_;
    const Refuse refuse_;
    std::map<std::uint64_t, std::unique_ptr<Pool>> pools_;
    PoolTrials trials_;
    bool is_draining_ = false;
    std::int64_t started_ = 0;
    std::int64_t finished_ = 0;
};

}  // namespace tune::worker
