#pragma once
// Trials that have a process tree of their own: the life of each attempt from the moment that it
// has its devices to its end being acknowledged.
//
//   launch -> running -> tree gone -> output read to its end -> (model logged)
//          -> (checkpoint stored) -> end sent (outbox), logs sent (upload) -> forgotten
//
// An attempt leaves the table only when both its end and its logs are settled.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "worker/agent/attempts/adoption.h"
#include "worker/agent/attempts/attempt_parts.h"
#include "worker/agent/attempts/attempt_table.h"
#include "worker/agent/devices/gpu_accounts.h"
#include "worker/agent/devices/gpu_memory_peaks.h"
#include "worker/agent/devices/system_sampling.h"
#include "worker/agent/output/output_pump.h"
#include "worker/agent/start/attempt_start.h"
#include "worker/agent/start/spare_folders.h"
#include "worker/agent/start/start_queue.h"

namespace tune::worker {

/// Loop thread only. What is about an attempt or a serial that is none of theirs is ignored; where
/// it returns a bool, that is false.
class SingleAttempts {
public:
    /// `shared` outlives it.
    explicit SingleAttempts(const SharedParts& shared);
    SingleAttempts(const SingleAttempts&) = delete;
    SingleAttempts& operator=(const SingleAttempts&) = delete;

    /// Takes over what an earlier agent left.
    void adopt_all();
    void launch(ReadyLease ready);
    /// Tells the server that a lease was not started. The slot that it took is given back.
    void refuse(const tuner::Lease& lease, tuner::Outcome outcome, const std::string& reason);

    [[nodiscard]] bool has(const tuner::AttemptId& id) const { return table_.find(id) != nullptr; }
    /// SIGTERM, for `intent`.
    bool end(const tuner::AttemptId& id, Intent intent, const std::string& reason);
    /// SIGTERM to all, or with `at_once` SIGKILL.
    void end_all(Intent intent, const std::string& reason, bool at_once);
    /// Those that have the GPU end.
    void on_gpu_fault(const std::string& uuid, const std::string& fault);
    /// A trace is wanted of it.
    void request_profile(const tuner::Directive& directive);

    /// What they report in this turn of the loop goes in one report.
    void gather() { pump_.gather(); }
    /// There may be output of it, or room for it.
    bool pump(std::uint64_t serial);
    void pump_all();

    // As in Attempts.
    bool on_finished(std::uint64_t serial);
    bool on_stale(std::uint64_t serial);
    bool on_uploaded(std::uint64_t serial, bool final, bool uploaded);

    void add_counts(AttemptCounts& counts) const;
    void add_held(std::vector<tuner::AttemptId>& ids) const { table_.add_held(ids); }
    [[nodiscard]] std::int64_t longest_grace_ms() const { return table_.longest_grace_ms(); }
    [[nodiscard]] bool is_idle() const { return table_.is_empty(); }

private:
    enum class Adoption { kRunning, kEnded, kNothing };

    [[nodiscard]] Adoption adopt(const std::filesystem::path& folder);
    /// From its insertion on: its processes, its GPUs.
    Attempt& enter(std::unique_ptr<Attempt> attempt);
    void watch(Attempt& attempt, Process supervisor);
    void follow(const Attempt& attempt, TrialOutput output);
    void ask_environment(const Attempt& attempt);
    void end(Attempt& attempt, Intent intent, const std::string& reason, int signal);
    void on_tree_gone(Attempt& attempt);
    void conclude_if_known(Attempt& attempt);
    void report_end(Attempt& attempt, tuner::FinishRequest request);
    void forget_if_done(std::uint64_t serial);

    const SharedParts& shared_;
    const AttemptParts& agent_;
    const std::string boot_id_;
    SpareFolders spare_folders_;
    AttemptStart start_;
    AttemptTable table_;
    OutputPump pump_;
    SystemSampling system_;
    GpuAccounts gpus_;
    GpuMemoryPeaks peaks_;
    std::int64_t started_ = 0;
    std::int64_t finished_ = 0;
};

}  // namespace tune::worker
