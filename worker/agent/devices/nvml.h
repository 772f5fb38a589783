#pragma once
// The NVIDIA driver's own library, libnvidia-ml.so.1, loaded at run time: nothing to link, nothing
// to install where there is no GPU. The prototypes are ours (nvml.cc), from the driver API 12.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace tune::worker {

inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

/// What does not change of a GPU, or of one slice (MIG instance) of it.
struct GpuFacts {
    std::string uuid = {};        ///< "GPU-..." or "MIG-..."
    std::string name = {};        ///< as the driver says
    std::int64_t bytes = 0;       ///< memory of the device
    int index = 0;                ///< of the GPU in the driver's list, which is in PCI order
    std::string parent = {};      ///< of a slice: the UUID of its GPU
    unsigned gpu_instance = 0;    ///< of a slice: by which the driver's events name it
    int numa_node = -1;           ///< -1: unknown, or the machine has but one
    std::vector<int> cores = {};  ///< near the device, ascending; empty: unknown
};

/// What one look at a device says. Absent: the driver does not say it, as of most of a slice's.
struct GpuReading {
    std::optional<double> utilization_percent = {};
    std::optional<std::int64_t> used_bytes = {};
    std::optional<std::int64_t> total_bytes = {};
    std::optional<double> power_watts = {};
    std::optional<double> power_limit_watts = {};
    std::optional<double> temperature_celsius = {};
    std::optional<std::int64_t> energy_mj = {};  ///< millijoules since the driver was loaded
};

/// A process that computes on a device.
struct GpuProcess {
    int pid = 0;
    std::int64_t bytes = 0;  ///< of the device's memory; 0: the driver does not say
};

struct GpuHealth {
    /// Why the device cannot be used, as a sentence without a full stop; empty: it can.
    std::string fault = {};
    std::int64_t uncorrected_errors = 0;  ///< of ECC, since the driver was loaded
};

/// Something that the driver announces.
struct GpuEvent {
    std::string parent = {};                    ///< the GPU's UUID
    std::optional<unsigned> gpu_instance = {};  ///< only this slice of it is concerned
    std::string fault = {};                     ///< as GpuHealth::fault
};

/// Why the device is not to be used after the driver reported this Xid; empty: it is none of the
/// device's faults. A program's own errors (a page fault, an exception, a reset of its engine) and
/// what the device mended by itself do not count. Source: the driver's catalogue of Xid errors, and
/// which of them NVIDIA's device plug-in for Kubernetes holds to be the application's.
[[nodiscard]] std::string fault_of_xid(std::uint64_t xid);

/// Thread-safe. Calls take microseconds to a few milliseconds; with a damaged device they may hang
/// in the driver, so they are not for a thread that others wait for.
class Nvml {
public:
    /// Loads and starts it. Errors: kResourceDoesNotExist where there is no such library (a machine
    /// without a GPU), kInternalError where it does not start (the driver's word is in it).
    [[nodiscard]] static Result<std::unique_ptr<Nvml>> load(const std::string& library);
    ~Nvml();
    Nvml(const Nvml&) = delete;
    Nvml& operator=(const Nvml&) = delete;

    /// All devices, in the driver's order; a GPU that is cut into slices is not among them, its
    /// slices are.
    [[nodiscard]] const std::vector<GpuFacts>& devices() const;
    /// What is wrong with GPUs that the driver lists and that cannot be opened, a sentence each.
    [[nodiscard]] const std::vector<std::string>& unusable() const;
    [[nodiscard]] const std::string& driver_version() const;

    // An unknown UUID reads as a device of which nothing is known.
    [[nodiscard]] GpuReading read(const std::string& uuid) const;
    [[nodiscard]] GpuHealth health(const std::string& uuid) const;
    [[nodiscard]] std::vector<GpuProcess> processes(const std::string& uuid) const;

    /// Whether the driver announces faults of some device; else only `health` tells of them.
    [[nodiscard]] bool has_events() const;
    /// Waits for the next fault that the driver announces, at most `timeout_ms`. One thread.
    [[nodiscard]] std::optional<GpuEvent> wait_for_event(unsigned timeout_ms) const;

private:
    class Impl;
    explicit Nvml(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace tune::worker
