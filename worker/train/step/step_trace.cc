// Kineto records what the calling thread does between two calls. Spans are LibTorch's own record
// functions, so that operators lie within them.

#include "worker/train/step/step_trace.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <set>
#include <string>
#include <utility>

#include "worker/train/device/device.h"

namespace tune::train {
namespace {

namespace profiler = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;

std::set<ActivityType> activities_of(const Device& device) {
    std::set<ActivityType> activities = {ActivityType::CPU};
    if (device.torch_device().is_cuda()) activities.insert(ActivityType::CUDA);
    return activities;
}

}  // namespace

struct Span::Guard {
    at::RecordFunction function{at::RecordScope::USER_SCOPE};
};

Span::Span(const char* name) {
    if (!at::hasCallbacks()) return;
    guard_ = std::make_unique<Guard>();
    if (guard_->function.isActive()) guard_->function.before(name);
}

Span::~Span() = default;

StepTrace::StepTrace(StepRange range, std::filesystem::path folder, Device& device)
    : range_(range), folder_(std::move(folder)), device_(device) {}

StepTrace::~StepTrace() {
    if (!is_recording_) return;
    try {
        profiler::disableProfiler();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): there is nobody to tell
    }
}

Result<std::optional<std::filesystem::path>> StepTrace::after_step(std::int64_t done) {
    std::optional<std::filesystem::path> nothing;
    if (is_over_) return nothing;
    if (is_recording_) {
        done_ = done;
        return done >= range_.last ? write() : nothing;
    }
    // A run that was resumed behind the first step records what is left.
    if (done + 1 < range_.first) return nothing;
    if (done >= range_.last) {
        is_over_ = true;
        return nothing;
    }
    try {
        const auto activities = activities_of(device_);
        const torch::profiler::impl::ProfilerConfig config(
            torch::profiler::impl::ProfilerState::KINETO);
        profiler::prepareProfiler(config, activities);
        profiler::enableProfiler(config, activities);
    } catch (const std::exception& error) {
        is_over_ = true;
        return Error{Code::kInternalError,
                     std::string("profile: LibTorch cannot record: ") + error.what()};
    }
    is_recording_ = true;
    return nothing;
}

Result<std::optional<std::filesystem::path>> StepTrace::finish() {
    if (!is_recording_ || done_ < range_.first) return std::optional<std::filesystem::path>();
    return write();
}

Result<std::optional<std::filesystem::path>> StepTrace::write() {
    is_recording_ = false;
    is_over_ = true;
    const std::filesystem::path path =
        folder_ / ("trace_" + std::to_string(range_.first) + "_" + std::to_string(done_) + ".json");
    std::error_code failed;
    std::filesystem::create_directories(folder_, failed);
    try {
        device_.synchronize();
        const auto result = profiler::disableProfiler();
        if (!failed && result) result->save(path.string());
    } catch (const std::exception& error) {
        return Error{Code::kInternalError,
                     "profile: cannot write '" + path.string() + "': " + error.what()};
    }
    if (failed || !std::filesystem::exists(path, failed))
        return Error{Code::kInternalError, "profile: cannot write '" + path.string() + "'" +
                                               (failed ? ": " + failed.message() : "")};
    return std::optional<std::filesystem::path>(path);
}

}  // namespace tune::train
