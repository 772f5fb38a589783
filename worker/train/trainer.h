#pragma once
// One training run from its configuration to its last checkpoint.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "worker/train/config/config.h"
#include "worker/train/early_stopping.h"
#include "worker/train/recorder.h"

namespace tune::train {

/// How a run ended.
struct Outcome {
    bool preempted = false;  ///< asked to stop; a checkpoint is written when there is a directory
    StopReason stop_reason = StopReason::kNotStopped;
    std::int64_t epochs = 0;
    std::int64_t steps = 0;
    std::string metric;          ///< the one that is watched
    std::optional<double> best;  ///< its best value
    std::int64_t best_epoch = 0;
    std::filesystem::path best_file = {};  ///< with its weights; empty: there is none
};

/// Trains, or goes on from the checkpoint in config.checkpoint_dir. Metrics are written to
/// `metrics_fd` as lines `tune: {...}`: one an epoch, whose `step` is the number of epochs behind
/// it, and one each config.log_every steps with train_loss_step, whose `step` counts optimizer
/// steps. A few lines for people go to stderr.
///
/// `stop` may be set at any time, e.g. by a signal handler: the step in progress is finished, a
/// checkpoint is written and Outcome::preempted is true. The same happens when nobody reads the
/// metrics any more.
///
/// With one thread the result is the same bit for bit for the same configuration, data and
/// machine, however often the run was stopped or killed in between.
///
/// Errors: kInvalidParameterValue and kResourceDoesNotExist for what the user must change,
/// kDataLoss for damaged data or checkpoints, kResourceExhausted when memory runs out.
[[nodiscard]] Result<Outcome> train(const TrainConfig& config, int metrics_fd,
                                    const std::atomic<bool>& stop);

class Device;

/// The same as one of several trainings of this process, on a device that they share: one rank,
/// lines to `lines`, nothing on stderr.
[[nodiscard]] Result<Outcome> train_beside_others(const TrainConfig& config, Device& device,
                                                  LineSink lines, const std::atomic<bool>& stop);

}  // namespace tune::train
