#pragma once
// What attempts leave beyond their metrics and logs, checkpoints and a model, and that an end is
// reported only once it is kept: the next attempt may start elsewhere as soon as the server knows.

#include <cstdint>
#include <filesystem>
#include <functional>

#include "tuner/protocol.h"
#include "worker/agent/attempts/attempt_files.h"
#include "worker/agent/checkpoints/checkpoint_saves.h"
#include "worker/agent/models/model_logging.h"

namespace tune::worker {

/// Attempts, of processes or in a pool, are named by their serial. Loop thread only.
class KeptResults {
public:
    using Report = CheckpointSaves::Report;

    /// The parts outlive it. `deadline_ms`: of a last save. `released` is called after a report
    /// that had to wait.
    KeptResults(Loop& loop, CheckpointTransfer& transfer, const CheckpointFolders& folders,
                int deadline_ms, const std::function<void()>& released);

    /// From now on what it leaves in `folder`, and a model, is kept beyond this machine.
    void watch(std::uint64_t serial, const tuner::Lease& lease, const std::filesystem::path& folder,
               const AttemptFiles& files);
    /// Its processes are gone: no more saves but the last one.
    void stop(std::uint64_t serial) { saves_.stop(serial); }
    /// Calls `report` at once, or when what the attempt left is kept: its model first, as its
    /// credential holds until its end is reported, then the last checkpoint.
    void report_when_kept(std::uint64_t serial, tuner::FinishRequest request, Report report);
    /// Nobody is told of its end.
    void forget(std::uint64_t serial);
    /// Attempts are killed at once: what is left to keep has little time from now on.
    void hurry();

    /// Of a job of another kind than kFetch.
    void on_result(const CheckpointJob& job, const CheckpointResult& result);

    /// Attempts whose end waits.
    [[nodiscard]] int finishing() const { return saves_.finishing() + models_.finishing(); }

private:
    CheckpointSaves saves_;
    ModelLogging models_;
};

}  // namespace tune::worker
