#pragma once
// `tune-trainer pool`: the protocol over stdin and stdout, or over a local socket.

#include <atomic>
#include <string>

#include "worker/train/config/config.h"

namespace tune::train {

struct PoolOptions {
    int parallel = 0;  ///< trials at once; 0: as many as this process may use processors
    DeviceKind device = DeviceKind::kAuto;
    std::string socket = {};  ///< path to listen at for one client; empty: stdin and stdout
};

/// Serves until the lines end or `stop` is set (trials then write checkpoints and end with 11).
/// Returns the exit code.
[[nodiscard]] int serve_pool(const PoolOptions& options, const std::atomic<bool>& stop);

}  // namespace tune::train
