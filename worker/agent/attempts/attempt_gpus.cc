// What an attempt has to do with its GPUs beyond having them: joules, metrics and faults. The
// driver is asked on the watch's threads; what it says comes back to the loop. A driver that does
// not answer holds up no end: after a while it is judged without its word.

#include <signal.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/json.h"
#include "base/system/file.h"
#include "worker/agent/attempts/attempt.h"
#include "worker/agent/attempts/attempts.h"
#include "worker/agent/devices/gpu_metrics.h"
#include "worker/agent/pools/pools.h"

namespace tune::worker {
namespace {

constexpr const char* kEnergyFile = "energy.json";
constexpr int kLastReading_ms = 2'000;
/// A trial may last less than a second; memory that grows later is seen by the later looks.
constexpr int kFirstMemoryLook_ms = 50;
constexpr int kMemoryLooksMax_ms = 1'000;
constexpr const char* kPeakMetric = "gpu_memory_peak_bytes";
/// More than any GPU has, and exact in a double.
constexpr double kPeakBytesMax = 1e15;

std::map<std::string, std::int64_t> energy_of(const GpuWatch::Readings& readings) {
    std::map<std::string, std::int64_t> energy;
    for (const WatchedReading& device : readings)
        if (device.energy_mj) energy[device.uuid] = *device.energy_mj;
    return energy;
}

}  // namespace

void Attempts::note_used_gpus(const Assignment& more) {
    if (parts_.gpu_watch == nullptr) return;
    std::set<std::string> used(more.gpus.begin(), more.gpus.end());
    for (const auto& [serial, attempt] : attempts_)
        if (attempt->alive)
            used.insert(attempt->assignment.gpus.begin(), attempt->assignment.gpus.end());
    parts_.gpu_watch->set_used(std::move(used));
}

/// The counters of energy at its beginning; those of an adopted attempt are on the disk.
void Attempts::read_first(const Attempt& attempt) {
    if (parts_.gpu_watch == nullptr || attempt.assignment.gpus.empty()) return;
    const std::uint64_t serial = attempt.record.serial;
    parts_.gpu_watch->read(attempt.assignment.gpus, [this, serial](GpuWatch::Readings readings) {
        parts_.loop->post(
            [this, serial, readings = std::move(readings)] { on_first_reading(serial, readings); });
    });
}

void Attempts::on_first_reading(std::uint64_t serial, const GpuWatch::Readings& readings) {
    Attempt* attempt = find(serial);
    if (attempt == nullptr || !attempt->alive) return;
    attempt->energy_mj = energy_of(readings);
    const std::filesystem::path path = attempt->files.path(kEnergyFile);
    if (const Result<std::string> kept = read_file(path)) {
        const Result<Json> json = parse_json(*kept);
        if (json && json->is_object())
            for (const auto& [uuid, energy] : json->items())
                if (energy.is_number_integer())
                    attempt->energy_mj[uuid] = energy.get<std::int64_t>();
        return;
    }
    const Result<void> written = write_file_atomic(path, to_text(Json(attempt->energy_mj)));
    if (!written) attempt->files.note(written.error().text());
}

void Attempts::read_last(Attempt& attempt) {
    if (parts_.gpu_watch == nullptr || attempt.assignment.gpus.empty()) return;
    const std::uint64_t serial = attempt.record.serial;
    attempt.gpus_read = false;
    parts_.gpu_watch->read(attempt.assignment.gpus, [this, serial](GpuWatch::Readings readings) {
        parts_.loop->post(
            [this, serial, readings = std::move(readings)] { on_last_reading(serial, readings); });
    });
    attempt.gpu_timer = parts_.loop->at(parts_.loop->now_ms() + kLastReading_ms,
                                        [this, serial] { on_last_reading(serial, {}); });
    note_used_gpus({});
}

void Attempts::on_last_reading(std::uint64_t serial, const GpuWatch::Readings& readings) {
    Attempt* attempt = find(serial);
    if (attempt == nullptr || attempt->gpus_read) return;
    parts_.loop->cancel(attempt->gpu_timer);
    attempt->gpus_read = true;
    for (const WatchedReading& device : readings)
        if (!device.fault.empty() && attempt->gpu_fault.empty())
            attempt->gpu_fault = device.uuid + ": " + device.fault;
    const std::optional<double> joules =
        joules_between(attempt->energy_mj, energy_of(readings), energy_share(*attempt));
    if (joules && energy_share(*attempt) > 0)
        parts_.outbox->add_metrics(serial,
                                   {{"tune.energy_joules", *joules, attempt->record.lease.attempt,
                                     parts_.loop->wall_ms()}});
    conclude_if_known(*attempt);
}

/// Of GPUs that are given by bytes, its part of their memory; 0: unknown.
double Attempts::energy_share(const Attempt& attempt) const {
    const std::vector<tuner::GrantedGpu>& granted = attempt.record.lease.devices;
    if (granted.empty() || granted.front().bytes <= 0) return attempt.assignment.gpu_share;
    for (const GpuFacts& gpu : settings_.gpus)
        if (gpu.uuid == granted.front().uuid && gpu.bytes > 0)
            return static_cast<double>(granted.front().bytes) / static_cast<double>(gpu.bytes);
    return 0;
}

void Attempts::sample_gpus(const Attempt& attempt) {
    if (parts_.gpu_watch == nullptr || attempt.assignment.gpus.empty()) return;
    const std::uint64_t serial = attempt.record.serial;
    std::vector<std::string> gpus = attempt.assignment.gpus;
    parts_.gpu_watch->read(gpus, [this, serial, gpus](const GpuWatch::Readings& readings) {
        parts_.loop->post([this, serial, values = gpu_metrics(gpus, readings)] {
            send_system_metrics(serial, values);
        });
    });
}

/// After its end the driver has forgotten what it had: so it is looked at while it runs, first soon
/// and then once a second. One look at a time, however slow the driver is.
void Attempts::watch_gpu_memory(Attempt& attempt) {
    if (parts_.gpu_watch == nullptr || attempt.assignment.gpus.empty()) return;
    attempt.gpu_look_ms =
        std::clamp(attempt.gpu_look_ms * 2, kFirstMemoryLook_ms, kMemoryLooksMax_ms);
    const std::uint64_t serial = attempt.record.serial;
    attempt.gpu_memory_timer = parts_.loop->at(parts_.loop->now_ms() + attempt.gpu_look_ms,
                                               [this, serial] { look_at_gpu_memory(serial); });
}

void Attempts::look_at_gpu_memory(std::uint64_t serial) {
    const Attempt* attempt = find(serial);
    if (attempt == nullptr || !attempt->alive) return;
    // Of a shared one the neighbours' memory is in the sum too.
    const bool is_alone = attempt->assignment.gpu_share >= 1;
    parts_.gpu_watch->read_memory(attempt->assignment.gpus, attempt->supervisor.pid, is_alone,
                                  [this, serial](std::int64_t bytes) {
                                      parts_.loop->post([this, serial, bytes] {
                                          Attempt* seen = find(serial);
                                          if (seen == nullptr) return;
                                          seen->peak_gpu_bytes =
                                              std::max(seen->peak_gpu_bytes, bytes);
                                          if (seen->alive) watch_gpu_memory(*seen);
                                      });
                                  });
}

void Attempts::note_told_peak(Attempt& attempt, const LineFindings& findings) {
    for (const tuner::ReportedMetric& metric : findings.metrics)
        if (metric.key == kPeakMetric && metric.value > 0 && metric.value < kPeakBytesMax)
            attempt.peak_gpu_bytes =
                std::max(attempt.peak_gpu_bytes, static_cast<std::int64_t>(metric.value));
}

void Attempts::on_gpu_fault(const std::string& uuid, const std::string& fault) {
    for (const auto& [serial, attempt] : attempts_) {
        const std::vector<std::string>& gpus = attempt->assignment.gpus;
        if (!attempt->alive || std::find(gpus.begin(), gpus.end(), uuid) == gpus.end()) continue;
        attempt->gpu_fault = uuid + ": " + fault;
        end(*attempt, Intent::kGpuFault, attempt->gpu_fault, SIGTERM);
    }
    pools_->on_gpu_fault(uuid, fault);
    publish();
}

}  // namespace tune::worker
