#include "worker/agent/devices/system_sampling.h"

#include <utility>

#include "worker/agent/devices/gpu_metrics.h"

namespace tune::worker {
namespace {

/// System metrics are differences: their base is read this part of a period after the start, so
/// that short trials do not pay for it.
constexpr int kBasePart = 10;

}  // namespace

SystemSampling::SystemSampling(Loop& loop, GpuWatch* gpu_watch, int period_ms, Report report)
    : loop_(loop), gpu_watch_(gpu_watch), period_ms_(period_ms), report_(std::move(report)) {}

void SystemSampling::watch(std::uint64_t serial, Sampled sampled) {
    if (period_ms_ <= 0) return;
    Watched& watched = watched_.insert_or_assign(serial, Watched{std::move(sampled)}).first->second;
    schedule(serial, watched);
}

void SystemSampling::stop(std::uint64_t serial) {
    const auto found = watched_.find(serial);
    if (found == watched_.end()) return;
    loop_.cancel(found->second.timer);
    watched_.erase(found);
}

void SystemSampling::schedule(std::uint64_t serial, Watched& watched) {
    const int delay_ms = watched.metrics ? period_ms_ : period_ms_ / kBasePart;
    watched.timer = loop_.at(loop_.now_ms() + delay_ms, [this, serial] { sample(serial); });
}

void SystemSampling::sample(std::uint64_t serial) {
    const auto found = watched_.find(serial);
    if (found == watched_.end()) return;
    Watched& watched = found->second;
    if (!watched.metrics) {
        watched.metrics.emplace(watched.sampled.supervisor_pid);
    } else {
        report(serial, watched.metrics->sample());
        sample_gpus(serial, watched.sampled.gpus);
    }
    schedule(serial, watched);
}

/// The driver is asked on the watch's thread; what it says comes back to the loop.
void SystemSampling::sample_gpus(std::uint64_t serial, const std::vector<std::string>& gpus) {
    if (gpu_watch_ == nullptr || gpus.empty()) return;
    gpu_watch_->read(gpus, [this, serial, gpus](const GpuWatch::Readings& readings) {
        loop_.post(
            [this, serial, values = gpu_metrics(gpus, readings)] { report(serial, values); });
    });
}

void SystemSampling::report(std::uint64_t serial, std::vector<NamedValue> values) {
    const auto found = watched_.find(serial);
    if (found == watched_.end()) return;
    const std::int64_t now = loop_.wall_ms();
    // Not by the wall clock, which may be set back meanwhile.
    const std::int64_t step = (loop_.now_ms() - found->second.sampled.started_ms) / period_ms_;
    std::vector<tuner::ReportedMetric> metrics;
    for (NamedValue& value : values)
        metrics.push_back({std::move(value.key), value.value, step, now});
    report_(serial, std::move(metrics));
}

}  // namespace tune::worker
