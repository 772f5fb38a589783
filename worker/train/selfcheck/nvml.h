#pragma once
// The few functions of NVIDIA's management library that the checks ask, from libnvidia-ml.so.1.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace tune::train {

struct NvmlDevice {
    std::string uuid;
    std::string name;
    std::uint64_t memory_bytes = 0;
    std::uint64_t used_bytes = 0;
    /// Process ids with a context there.
    std::vector<unsigned> processes;
};

/// Every GPU of this machine, whatever CUDA_VISIBLE_DEVICES says. Errors: kResourceDoesNotExist
/// without the library, kInternalError with NVML's own text.
[[nodiscard]] Result<std::vector<NvmlDevice>> nvml_devices();

}  // namespace tune::train
