#include "worker/agent/devices/gpu_metrics.h"

#include <algorithm>
#include <cmath>

namespace tune::worker {
namespace {

constexpr double kGpuMegabyte = 1e6;  // as MLflow: decimal

void add(std::vector<NamedValue>& values, const std::string& key, std::optional<double> value) {
    if (value) values.push_back({key, std::round(*value * 10) / 10});
}

template <class Part, class Whole>
std::optional<double> percent(std::optional<Part> part, std::optional<Whole> whole) {
    if (!part || !whole || *whole <= 0) return std::nullopt;
    return static_cast<double>(*part) / static_cast<double>(*whole) * 100;
}

}  // namespace

std::vector<NamedValue> gpu_metrics(const std::vector<std::string>& gpus,
                                    const GpuWatch::Readings& readings) {
    std::vector<NamedValue> values;
    for (const WatchedReading& device : readings) {
        const auto place = std::find(gpus.begin(), gpus.end(), device.uuid);
        if (place == gpus.end()) continue;
        const std::string prefix = "system/gpu_" + std::to_string(place - gpus.begin()) + "_";
        const GpuReading& reading = device.reading;
        std::optional<double> megabytes;
        if (reading.used_bytes) megabytes = static_cast<double>(*reading.used_bytes) / kGpuMegabyte;
        add(values, prefix + "memory_usage_percentage",
            percent(reading.used_bytes, reading.total_bytes));
        add(values, prefix + "memory_usage_megabytes", megabytes);
        add(values, prefix + "utilization_percentage", reading.utilization_percent);
        add(values, prefix + "power_usage_watts", reading.power_watts);
        add(values, prefix + "power_usage_percentage",
            percent(reading.power_watts, reading.power_limit_watts));
    }
    return values;
}

std::optional<double> joules_between(const std::map<std::string, std::int64_t>& first_mj,
                                     const std::map<std::string, std::int64_t>& last_mj,
                                     double share) {
    double joules = 0;
    for (const auto& [uuid, last] : last_mj) {
        const auto first = first_mj.find(uuid);
        if (first == first_mj.end() || last < first->second) return std::nullopt;
        joules += static_cast<double>(last - first->second) / 1e3;
    }
    if (last_mj.empty() || last_mj.size() != first_mj.size()) return std::nullopt;
    return joules * share;
}

}  // namespace tune::worker
