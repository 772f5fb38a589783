#pragma once
// The cores and GPUs of this machine that the agent may hand out, and who has which.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace tune::worker {

/// What one attempt holds.
struct Assignment {
    std::vector<int> cores;         // its own cores; empty: shares all
    std::vector<std::string> gpus;  // UUIDs
    double gpu_share = 1;           // of each of `gpus`; below 1 it has neighbours there
};

/// Not thread-safe.
class Devices {
public:
    Devices(std::vector<int> cores, std::vector<std::string> gpus);

    [[nodiscard]] const std::vector<int>& cores() const { return cores_; }
    [[nodiscard]] std::vector<std::string> gpus() const;

    /// Takes floor(cpus) cores (none below 1: such trials share) and `gpus` GPUs (a fraction below
    /// 1 is a share of the GPU with the least left that has room). Empty: not free now, ask again
    /// after a release. Errors: kInvalidParameterValue if the machine never has that much.
    [[nodiscard]] Result<std::optional<Assignment>> take(double cpus, double gpus);
    /// Marks what an adopted attempt holds; names this machine no longer has are ignored.
    void take_again(const Assignment& assignment);
    void release(const Assignment& assignment);

private:
    struct Gpu {
        std::string uuid;
        double free = 1;
    };
    [[nodiscard]] std::optional<std::vector<std::string>> find_gpus(double gpus) const;
    void change_gpus(const Assignment& assignment, double by);

    std::vector<int> cores_;
    std::vector<bool> core_taken_;
    std::vector<Gpu> gpus_;
};

/// The cores in this process's affinity mask, ascending.
[[nodiscard]] std::vector<int> allowed_cores();

/// UUIDs of the GPUs (or MIG slices, where a GPU is cut into such) that the NVIDIA driver lists,
/// through libnvidia-ml.so.1 if there is one. If CUDA_VISIBLE_DEVICES is set, only those it names,
/// in its order: indices are positions in the driver's list, and UUIDs may be abbreviated.
[[nodiscard]] std::vector<std::string> find_gpus();

/// The part of `find_gpus` that reads CUDA_VISIBLE_DEVICES.
[[nodiscard]] std::vector<std::string> visible_gpus(const std::vector<std::string>& all,
                                                    const std::string& visible);

}  // namespace tune::worker
