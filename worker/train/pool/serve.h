#pragma once
// `tune-trainer pool`: the protocol over stdin and stdout, or over a local socket.

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "worker/train/config/config.h"

namespace tune::train {

struct PoolOptions {
    int parallel = 0;  ///< trials at once; 0: as many as this process may use processors
    DeviceKind device = DeviceKind::kAuto;
    /// Of each trial, unless it says otherwise: parameters of `tune-trainer train` and their
    /// values.
    std::vector<std::pair<std::string, std::string>> parameters = {};
    /// Trials give their parameters out as metrics and end: to measure what is around them.
    bool only_reports = false;
    double stats_every = 0;   ///< TrainConfig::stats_every of each trial, unless it says otherwise
    std::string socket = {};  ///< path to listen at for one client; empty: stdin and stdout
};

/// Serves until the lines end or `stop` is set (trials then write checkpoints and end with 11).
/// Returns the exit code.
[[nodiscard]] int serve_pool(const PoolOptions& options, const std::atomic<bool>& stop);

}  // namespace tune::train
