#pragma once
// `tune bench`: how fast a server is on this machine.

#include <optional>
#include <string>

namespace tune::cli {

struct BenchCommand {
    std::optional<std::string> dir = {};  ///< where the temporary folder is made
    double seconds = 1;                   ///< of each measurement
    int clients = 16;                     ///< of the first one
    bool json = false;
};

/// Starts `tune server` in a temporary folder, measures, and removes both, also when a signal ends
/// it. Failed: with the server's last words.
[[nodiscard]] int run_bench(const BenchCommand& options);

}  // namespace tune::cli
