#include "worker/agent/devices/gpu_memory_peaks.h"

#include <algorithm>
#include <utility>

namespace tune::worker {
namespace {

/// A trial may last less than a second; memory that grows later is seen by the later looks.
constexpr int kFirstLook_ms = 50;
constexpr int kLooksMax_ms = 1'000;
constexpr const char* kPeakMetric = "gpu_memory_peak_bytes";
/// More than any GPU has, and exact in a double.
constexpr double kPeakBytesMax = 1e15;

}  // namespace

void GpuMemoryPeaks::watch(std::uint64_t serial, Watched watched) {
    if (watch_ == nullptr || watched.gpus.empty()) return;
    Peak& peak = peaks_[serial];
    peak.watched = std::move(watched);
    peak.is_running = true;
    schedule(serial, peak);
}

void GpuMemoryPeaks::schedule(std::uint64_t serial, Peak& peak) {
    peak.look_ms = std::clamp(peak.look_ms * 2, kFirstLook_ms, kLooksMax_ms);
    peak.timer = loop_.at(loop_.now_ms() + peak.look_ms, [this, serial] { look(serial); });
}

void GpuMemoryPeaks::look(std::uint64_t serial) {
    const auto found = peaks_.find(serial);
    if (found == peaks_.end() || !found->second.is_running) return;
    const Watched& watched = found->second.watched;
    // Of a shared one the neighbours' memory is in the sum too.
    watch_->read_memory(watched.gpus, watched.supervisor_pid, watched.is_alone,
                        [this, serial](std::int64_t bytes) {
                            loop_.post([this, serial, bytes] { on_look(serial, bytes); });
                        });
}

void GpuMemoryPeaks::on_look(std::uint64_t serial, std::int64_t bytes) {
    const auto found = peaks_.find(serial);
    if (found == peaks_.end()) return;
    found->second.bytes = std::max(found->second.bytes, bytes);
    if (found->second.is_running) schedule(serial, found->second);
}

void GpuMemoryPeaks::note(std::uint64_t serial, const LineFindings& findings) {
    for (const tuner::ReportedMetric& metric : findings.metrics) {
        if (metric.key != kPeakMetric || !(metric.value > 0 && metric.value < kPeakBytesMax))
            continue;
        std::int64_t& bytes = peaks_[serial].bytes;
        bytes = std::max(bytes, static_cast<std::int64_t>(metric.value));
    }
}

void GpuMemoryPeaks::stop(std::uint64_t serial) {
    const auto found = peaks_.find(serial);
    if (found == peaks_.end()) return;
    loop_.cancel(found->second.timer);
    found->second.is_running = false;
}

void GpuMemoryPeaks::forget(std::uint64_t serial) {
    stop(serial);
    peaks_.erase(serial);
}

std::int64_t GpuMemoryPeaks::peak_bytes(std::uint64_t serial) const {
    const auto found = peaks_.find(serial);
    return found == peaks_.end() ? 0 : found->second.bytes;
}

}  // namespace tune::worker
