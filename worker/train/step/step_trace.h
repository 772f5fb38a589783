#pragma once
// A trace of a few steps for chrome://tracing, Perfetto or TensorBoard: operators, kernels, and the
// parts of a step.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/result.h"
#include "worker/train/config/config.h"

namespace tune::train {

class Device;

/// A part of the trace, from here to the end of its life; next to nothing while none is recorded.
/// `name` is a literal.
class Span {
public:
    explicit Span(const char* name);
    ~Span();
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

private:
    struct Guard;
    std::unique_ptr<Guard> guard_;
};

/// Records one range of steps of the calling thread, by LibTorch's own profiler (Kineto).
class StepTrace {
public:
    /// Writes to trace_FIRST_LAST.json in `folder`, which is made where it is missing.
    StepTrace(StepRange range, std::filesystem::path folder, Device& device);
    /// What is recorded so far is dropped.
    ~StepTrace();
    StepTrace(const StepTrace&) = delete;
    StepTrace& operator=(const StepTrace&) = delete;

    /// Between steps: number `done` is behind us. The file, when it has just been written. Errors:
    /// kInternalError with LibTorch's or the system's reason; nothing more is recorded then.
    [[nodiscard]] Result<std::optional<std::filesystem::path>> after_step(std::int64_t done);
    /// The end of the steps: what there is of the range is written.
    [[nodiscard]] Result<std::optional<std::filesystem::path>> finish();

    /// Written, failed, or behind us.
    [[nodiscard]] bool is_over() const { return is_over_; }

private:
    Result<std::optional<std::filesystem::path>> write();

    const StepRange range_;
    const std::filesystem::path folder_;
    Device& device_;
    std::int64_t done_ = 0;
    bool is_recording_ = false;
    bool is_over_ = false;
};

}  // namespace tune::train
