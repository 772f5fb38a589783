#pragma once
// The model that a trial left when it was complete is logged before its end is reported: until then
// the attempt's own credential holds, and who reads that the trial is complete finds its model. An
// agent that was killed meanwhile finds the folder again when it takes the attempt over.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "tuner/protocol.h"
#include "worker/agent/attempts/attempt_files.h"
#include "worker/agent/checkpoints/checkpoint_transfer.h"
#include "worker/agent/loop.h"

namespace tune::worker {

/// Attempts, of processes or in a pool, are named by their serial. Loop thread only.
class ModelLogging {
public:
    using Report = std::function<void(tuner::FinishRequest)>;

    /// The parts outlive it. `released` is called after a report that had to wait.
    ModelLogging(Loop& loop, CheckpointTransfer& transfer, std::function<void()> released);

    /// The attempt may leave a model. `name`: its own, for messages.
    void watch(std::uint64_t serial, const tuner::Lease& lease, std::string name,
               const AttemptFiles& files);
    /// Calls `report` at once, or when the attempt's model is logged, or could not be.
    void finish(std::uint64_t serial, tuner::FinishRequest request, Report report);
    void forget(std::uint64_t serial) { attempts_.erase(serial); }
    /// Attempts are killed at once: models have little time from now on.
    void hurry();

    /// Of a job of kind kModel.
    void on_result(std::uint64_t serial, const std::optional<Error>& error);

    /// Attempts whose model is on its way.
    [[nodiscard]] int finishing() const;

private:
    struct Attempt {
        CheckpointJob job;
        AttemptFiles files;
        std::string name;
        Loop::TimerId timer = Loop::kNoTimer;
        std::optional<tuner::FinishRequest> held = {};  // waits for the model
        Report report = {};
    };

    void limit(std::uint64_t serial, Attempt& attempt);

    Loop& loop_;
    CheckpointTransfer& transfer_;
    const std::function<void()> released_;
    bool is_hurried_ = false;
    std::map<std::uint64_t, Attempt> attempts_;
};

}  // namespace tune::worker
