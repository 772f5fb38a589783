#pragma once
// Somebody may want a trace of a training that runs: a file then appears, or is replaced.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>

namespace tune::train {

/// One thread.
class ProfileRequest {
public:
    /// `file` holds "TURN STEPS", a new TURN for each request. An empty path never does. What a
    /// file that is there already says counts.
    explicit ProfileRequest(std::filesystem::path file) : file_(std::move(file)) {}

    /// The number of steps to trace, once a request. Looks at the file ten times a second at most:
    /// a step may take microseconds.
    [[nodiscard]] std::optional<std::int64_t> look(std::chrono::steady_clock::time_point now);

private:
    const std::filesystem::path file_;
    std::chrono::steady_clock::time_point due_ = {};
    std::int64_t turn_ = 0;
};

}  // namespace tune::train
