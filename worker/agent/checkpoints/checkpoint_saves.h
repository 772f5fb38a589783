#pragma once
// Stores the checkpoint folders of running attempts beyond this machine, now and then, and once
// more before the end of one is reported: the next attempt may start elsewhere as soon as it is.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "tuner/protocol.h"
#include "worker/agent/attempts/attempt_files.h"
#include "worker/agent/checkpoints/checkpoint_folders.h"
#include "worker/agent/checkpoints/checkpoint_transfer.h"
#include "worker/agent/loop.h"

namespace tune::worker {

/// Attempts, of processes or in a pool, are named by their serial. Loop thread only.
class CheckpointSaves {
public:
    using Report = std::function<void(tuner::FinishRequest)>;

    /// The parts outlive it. `deadline_ms`: of a last save. `released` is called after a report
    /// that had to wait.
    CheckpointSaves(Loop& loop, CheckpointTransfer& transfer, const CheckpointFolders& folders,
                    int deadline_ms, std::function<void()> released);

    /// Stores the folder from now on, unless the study wants that nowhere. `name`: of the attempt,
    /// for messages.
    void watch(std::uint64_t serial, const tuner::Lease& lease, std::string name,
               const std::filesystem::path& folder, const AttemptFiles& files);
    /// No more saves but the last one.
    void stop(std::uint64_t serial);
    /// Calls `report` at once, or when the last checkpoint is stored, or what was stored is
    /// removed, or there was no time for it.
    void finish(std::uint64_t serial, tuner::FinishRequest request, Report report);
    void forget(std::uint64_t serial);
    /// Attempts are killed at once: last saves have little time from now on.
    void hurry() { is_hurried_ = true; }

    /// Of a job of another kind than kFetch and kModel.
    void on_result(const CheckpointJob& job, const CheckpointResult& result);

    /// Attempts whose last checkpoint is on its way.
    [[nodiscard]] int finishing() const;

private:
    struct Attempt {
        CheckpointJob job;
        AttemptFiles files;
        std::string name;
        bool is_continued = false;
        bool is_kept = false;
        std::int64_t every_ms = 0;
        Loop::TimerId timer = Loop::kNoTimer;           // of the next one, or for the last one
        bool has_stored = false;                        // something
        bool has_warned = false;                        // that it could not
        std::optional<tuner::FinishRequest> held = {};  // waits for the last one
        Report report = {};
    };

    void schedule(std::uint64_t serial);
    void release(std::uint64_t serial, const std::optional<Error>& error);

    Loop& loop_;
    CheckpointTransfer& transfer_;
    const CheckpointFolders& folders_;
    const int deadline_ms_;
    const std::function<void()> released_;
    bool is_hurried_ = false;
    std::map<std::uint64_t, Attempt> attempts_;
};

}  // namespace tune::worker
