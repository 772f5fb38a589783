#pragma once
// Leases that have not been started: what each still waits for. First the stored checkpoint or the
// registered model that it starts from comes to this machine; then a pool may have room for it, or
// its cores and GPUs are taken as soon as they are free.

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/system/unique_fd.h"
#include "tuner/protocol.h"
#include "worker/agent/checkpoints/checkpoint_fetches.h"
#include "worker/agent/devices/devices.h"
#include "worker/agent/loop.h"

namespace tune::worker {

/// A lease that has all it needs.
struct ReadyLease {
    tuner::Lease lease;
    Assignment assignment;
    std::vector<std::string> notes = {};  ///< of the fetch, for the user
};

/// What comes of leases. Each is handed on once: to somebody by `admit`, to `launch` or `refuse`,
/// or back to who takes it out of the queue.
struct StartHooks {
    enum class Admission { kDevices, kTaken, kLater };
    /// Before devices are looked for. kTaken: somebody has it, as a running pool; kLater: it waits
    /// for the next retry().
    std::function<Admission(tuner::Lease& lease)> admit;
    std::function<void(ReadyLease ready)> launch;
    std::function<void(const tuner::Lease& lease, tuner::Outcome outcome,
                       const std::string& reason)>
        refuse;
    /// Leases have left the queue otherwise than within start() or retry().
    std::function<void()> changed;
};

/// Loop thread only.
class StartQueue {
public:
    /// The parts outlive it. `slots`: of the agent. The rest as CheckpointFetches.
    StartQueue(Loop& loop, Devices& devices, int slots, CheckpointTransfer& transfer,
               const CheckpointFolders& folders, const std::filesystem::path& model_root,
               int deadline_ms, StartHooks hooks);

    void start(tuner::Lease lease);
    /// Something may have become free.
    void retry();
    /// Of a job of kind kFetch.
    void on_fetched(std::uint64_t job, const CheckpointResult& result);

    [[nodiscard]] std::vector<tuner::AttemptId> ids() const;
    /// Takes the lease out; empty: it is not here.
    [[nodiscard]] std::optional<tuner::Lease> take(const tuner::AttemptId& id);
    [[nodiscard]] bool is_empty() const { return waiting_.empty() && fetches_.is_empty(); }

private:
    struct Waiting {
        tuner::Lease lease;
        std::vector<std::string> notes;
    };

    void receive(tuner::Lease lease, const CheckpointResult& result);
    void place(Waiting waiting);
    void await_core();

    Loop& loop_;
    Devices& devices_;
    const bool has_gpu_each_;  // of the slots, at the start
    const StartHooks hooks_;
    CheckpointFetches fetches_;
    std::deque<Waiting> waiting_;  // for devices
    UniqueFd core_news_;           // another agent lets go of a core
};

}  // namespace tune::worker
