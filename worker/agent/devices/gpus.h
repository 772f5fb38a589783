#pragma once
// The GPUs of this machine that are the agent's: found, chosen, and locked against other agents.

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "worker/agent/devices/devices.h"
#include "worker/agent/devices/nvml.h"

namespace tune::worker {

/// Which GPUs are wanted.
struct GpuChoice {
    std::string library = kNvmlLibrary;
    /// UUIDs, which may be abbreviated, or positions in the driver's list. Empty: all that
    /// `visible` allows.
    std::vector<std::string> names = {};
    /// Where there is no driver, these are taken as they are, and not locked.
    std::vector<GpuFacts> declared = {};
    /// At most so many, the first ones that are free; absent: all.
    std::optional<std::size_t> count_max = {};
    /// CUDA_VISIBLE_DEVICES of the agent's own environment; absent: not set.
    std::optional<std::string> visible = {};
    /// Used by trials that an earlier agent on the same state folder left behind: the agent's,
    /// though those trials hold the locks.
    std::set<std::string> adopted = {};
};

struct OwnGpus {
    std::unique_ptr<Nvml> nvml = {};  ///< null: no driver
    std::vector<GpuFacts> devices = {};
    std::map<std::string, MachineLock> locks = {};  ///< by UUID; an adopted one may have none
    /// For the user: GPUs that other agents have, or that cannot be used.
    std::vector<std::string> remarks = {};
};

/// Finds and locks them. A machine without a driver has none. Errors: kInvalidParameterValue for a
/// name that is none of this machine's GPUs, kResourceExhausted (no descriptor left).
[[nodiscard]] Result<OwnGpus> open_gpus(const GpuChoice& choice);

/// The devices that a list as CUDA_VISIBLE_DEVICES names, in its order: by position of the GPU in
/// the driver's list (all its slices, if it is cut into such), or by UUID, which may be
/// abbreviated. As in the CUDA runtime the first name that is unknown ends the list.
[[nodiscard]] std::vector<GpuFacts> visible_gpus(const std::vector<GpuFacts>& all,
                                                 const std::string& visible);

}  // namespace tune::worker
