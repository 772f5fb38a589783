#pragma once
// What an engine gave to the agent that runs here, read from what the engine left in the
// environment and from the cgroup: so that an agent never takes what is not its own.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace tune::launch {

struct Grant {
    std::string engine = {};       ///< "slurm", "kubernetes" or empty: none is recognised
    std::string job = {};          ///< the engine's name for it: "1234_5", the pod
    std::string host = {};         ///< as the engine calls it
    int restarts = 0;              ///< times that the engine requeued it
    std::optional<int> cpus = {};  ///< cores; absent: no limit is known
    /// False: the engine gave no GPU, whatever the driver lists. Absent: nothing is known.
    std::optional<bool> has_gpus = {};
    std::string gpu_mask = {};  ///< CUDA_VISIBLE_DEVICES as the engine set it
    std::optional<std::int64_t> memory_bytes = {};
    std::optional<std::int64_t> end_s = {};  ///< wall clock, seconds since 1970, where it is told
};

/// Empty for a variable that is not set.
using Variables = std::function<std::string(const char* name)>;

/// `cgroup_root`: where cgroup v2 is mounted; `own_cgroup`: this process's path below it, as the
/// line "0::/..." of /proc/self/cgroup has it; limits of its parents count too. Reads a few small
/// files.
[[nodiscard]] Grant read_grant(const Variables& variables, const std::filesystem::path& cgroup_root,
                               const std::string& own_cgroup);

/// Of this process.
[[nodiscard]] Grant own_grant();

/// "slurm job 1234_5 on n1: 4 cores, GPUs 0,1"; empty where nothing is known.
[[nodiscard]] std::string grant_text(const Grant& grant);

}  // namespace tune::launch
