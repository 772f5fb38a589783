#pragma once
// A cgroup (version 2) for each attempt, where this agent may make some: what bounds its memory,
// its processors and its number of processes holds for the whole process tree.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tune::worker {

/// 0: no limit.
struct CgroupLimits {
    std::int64_t memory_bytes = 0;  ///< without swap
    double cpus = 0;
    std::int64_t processes = 0;

    [[nodiscard]] bool any() const { return memory_bytes > 0 || cpus > 0 || processes > 0; }
};

/// A folder of the cgroup file system that is the agent's own. Stateless but for its place.
class Cgroups {
public:
    /// Prepares `folder`, which must hold no process of its own. Empty: the agent's own cgroup, if
    /// no other process is in it; the agent then moves to a cgroup `agent` below it. Errors:
    /// kResourceDoesNotExist (no cgroup v2 with a memory controller on this machine),
    /// kPermissionDenied (it is not delegated to this user, or shared), each with what to do.
    [[nodiscard]] static Result<Cgroups> open(std::filesystem::path folder);

    /// Makes the cgroup of an attempt with these limits. Supervisors stay outside of it, in
    /// `supervisors` beside it. Errors: kInternalError.
    [[nodiscard]] Result<std::filesystem::path> create(const std::string& name,
                                                       const CgroupLimits& limits) const;
    /// Kills what is in it and removes it; one that is gone is ignored.
    void remove(const std::string& name) const;

    [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

private:
    explicit Cgroups(std::filesystem::path folder) : folder_(std::move(folder)) {}
    std::filesystem::path folder_;
};

/// The folder of a process's cgroup, from the texts of /proc/PID/cgroup and /proc/PID/mountinfo.
/// Empty: it is in none of version 2.
[[nodiscard]] std::filesystem::path cgroup_folder(std::string_view cgroups,
                                                  std::string_view mounts);

}  // namespace tune::worker
