#pragma once
// What a small program says, for those who may wait for it.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace tune::worker {

struct CommandLimits {
    int timeout_ms = 5'000;
    std::size_t bytes_max = 64u << 10;  ///< of its output; the rest is not read
};

/// Runs `command` (found in PATH) without input and returns its standard output. Nothing: it could
/// not be started, failed, or did not end in time (it is killed then). Blocks.
[[nodiscard]] std::optional<std::string> output_of(const std::vector<std::string>& command,
                                                   const CommandLimits& limits = {});

}  // namespace tune::worker
