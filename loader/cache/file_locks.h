#pragma once
// Locks between processes and between caches of one process, on numbered places of one file.

#include <cstdint>
#include <filesystem>

#include "base/result.h"
#include "base/system/unique_fd.h"

namespace tune::loader {

/// Locks of an open file description (Linux 3.15): the kernel releases them when the process dies,
/// however it dies. Within one object a place is one lock, whichever thread took it: threads of one
/// cache agree by other means. A child made by fork() shares the parent's locks until it calls
/// exec() or ends. Thread-safe.
class FileLocks {
public:
    /// Creates the file if need be. Errors: kInternalError or kPermissionDenied with path and
    /// reason.
    [[nodiscard]] static Result<FileLocks> open(const std::filesystem::path& path);

    /// Whether nobody else holds the place in any way; it is then held until unlock().
    [[nodiscard]] bool try_lock(std::uint64_t place) const;
    /// Whether nobody else holds the place exclusively; it is then shared until unlock().
    [[nodiscard]] bool try_share(std::uint64_t place) const;
    /// Waits in the kernel until the place is held. A cancellation point of pthread_cancel.
    void lock(std::uint64_t place) const;
    /// As lock(), in common with others that share it.
    void share(std::uint64_t place) const;
    void unlock(std::uint64_t place) const;

private:
    explicit FileLocks(UniqueFd fd) : fd_(std::move(fd)) {}
    bool set(short type, std::uint64_t place, bool waits) const;

    UniqueFd fd_;
};

}  // namespace tune::loader
