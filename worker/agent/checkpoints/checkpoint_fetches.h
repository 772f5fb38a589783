#pragma once
// Leases whose stored checkpoint, or a registered model that they start from, is on its way to this
// machine: they start when it is here.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "tuner/protocol.h"
#include "worker/agent/checkpoints/checkpoint_folders.h"
#include "worker/agent/checkpoints/checkpoint_transfer.h"
#include "worker/agent/loop.h"

namespace tune::worker {

/// Loop thread only.
class CheckpointFetches {
public:
    /// What came of it, with the lease that waited for it.
    using Fetched = std::function<void(tuner::Lease lease, const CheckpointResult& result)>;

    /// The parts outlive it. `model_root`: where models are kept. `deadline_ms`: a fetch that takes
    /// longer has failed.
    CheckpointFetches(Loop& loop, CheckpointTransfer& transfer, const CheckpointFolders& folders,
                      std::filesystem::path model_root, int deadline_ms, Fetched fetched);

    /// True: the lease was taken over, and `fetched` will be called. False: nothing is stored that
    /// this machine might lack.
    [[nodiscard]] bool take(tuner::Lease& lease);
    /// Gives up the fetch; the lease that waited for it.
    [[nodiscard]] std::optional<tuner::Lease> give_up(const tuner::AttemptId& id);
    /// Of a job of kind kFetch.
    void on_result(std::uint64_t job, const CheckpointResult& result);

    /// Of the leases that wait.
    [[nodiscard]] std::vector<tuner::AttemptId> ids() const;
    [[nodiscard]] bool is_empty() const { return fetches_.empty(); }

private:
    struct Fetch {
        tuner::Lease lease;
        Loop::TimerId timer = Loop::kNoTimer;
    };

    [[nodiscard]] std::vector<FetchTarget> targets_of(const tuner::Lease& lease) const;

    Loop& loop_;
    CheckpointTransfer& transfer_;
    const CheckpointFolders& folders_;
    const std::filesystem::path model_root_;
    const int deadline_ms_;
    const Fetched fetched_;
    std::map<std::uint64_t, Fetch> fetches_;  // by the number of the job
};

}  // namespace tune::worker
