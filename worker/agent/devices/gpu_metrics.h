#pragma once
// From readings of GPUs to numbers for people. Pure.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "worker/agent/devices/gpu_watch.h"
#include "worker/agent/devices/system_metrics.h"

namespace tune::worker {

/// system/gpu_<i>_... of each device, i being its place among the trial's own (`gpus`), which is
/// the number by which the trial's program knows it. Values are rounded to a tenth; what the driver
/// does not say is left out. Source of names and meaning: mlflow 3.17.2,
/// mlflow/system_metrics/metrics/gpu_monitor.py, which logs all GPUs of the machine.
[[nodiscard]] std::vector<NamedValue> gpu_metrics(const std::vector<std::string>& gpus,
                                                  const GpuWatch::Readings& readings);

/// What the devices used between two looks, in joules, times the trial's share of them. Absent
/// where it is unknown of one, or the driver was loaded anew meanwhile.
[[nodiscard]] std::optional<double> joules_between(
    const std::map<std::string, std::int64_t>& first_mj,
    const std::map<std::string, std::int64_t>& last_mj, double share);

}  // namespace tune::worker
