#pragma once
// How much memory a process may use: of the machine, of its cgroup, of what its agent gave it.

#include <cstdint>
#include <filesystem>
#include <optional>

namespace tune::train {

/// The smallest memory.max of the cgroup (version 2) that `membership` names, a file like
/// /proc/self/cgroup, and of the groups around it; nothing where none is set or there is no such
/// group below `root`.
[[nodiscard]] std::optional<double> cgroup_memory_limit(
    const std::filesystem::path& membership = "/proc/self/cgroup",
    const std::filesystem::path& root = "/sys/fs/cgroup");

/// A variable that holds a positive number of bytes; nothing otherwise.
[[nodiscard]] std::optional<double> bytes_of_environment(const char* name);

/// Bytes that a process started here may use: what is free, or what RLIMIT_DATA, a cgroup or
/// TUNE_MEMORY_BYTES leaves. 0: unknown.
[[nodiscard]] double host_memory_limit();

/// The number of kilobytes after `name` in a file of /proc, in bytes; 0: not there.
[[nodiscard]] double proc_bytes(const char* file, const char* name);

}  // namespace tune::train
