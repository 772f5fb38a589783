#pragma once
// The trials of this machine, from the moment that they are leased until their ends are with the
// server: those that wait (start/start_queue.h), those that have a process tree of their own
// (single_attempts.h) and those that run in pools (pools/pools.h). Here is what comes from the
// server and the devices, handed to whom it concerns, and what all of them together hold.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "worker/agent/attempts/attempt_parts.h"
#include "worker/agent/attempts/kept_results.h"
#include "worker/agent/attempts/single_attempts.h"
#include "worker/agent/checkpoints/checkpoint_folders.h"
#include "worker/agent/environment/environment_questions.h"
#include "worker/agent/output/wake_fifo.h"
#include "worker/agent/start/start_queue.h"
#include "worker/agent/time_limit.h"

namespace tune::worker {

class Pools;

/// Loop thread only; nothing here waits for the network.
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
    [[nodiscard]] StartHooks start_hooks();
    [[nodiscard]] WakeEvents wake_events();
    [[nodiscard]] SharedParts shared_parts();
    [[nodiscard]] StartHooks::Admission admit(tuner::Lease& lease);
    /// Also one that waits, for a device or its checkpoint.
    [[nodiscard]] bool holds(const tuner::AttemptId& id) const;
    /// What is held and free has changed: told to the others once a turn of the loop.
    void publish();
    void publish_now();

    const AttemptSettings settings_;
    const AttemptParts parts_;
    const std::function<void()> changed_;
    bool is_publishing_ = false;  // at the end of this turn
    CheckpointFolders checkpoint_folders_;
    KeptResults results_;
    EnvironmentQuestions environments_;
    TrialDurations durations_;
    const SharedParts shared_;
    WakeFifo wake_;
    StartQueue queue_;
    SingleAttempts singles_;
    const std::unique_ptr<Pools> pools_;
};

}  // namespace tune::worker
