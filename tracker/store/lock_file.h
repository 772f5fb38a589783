#pragma once

#include <filesystem>
#include <memory>

#include "base/result.h"

namespace tune::tracker {

/// An exclusive lock on a file, held until destruction or the end of the process (also by kill -9).
/// The file holds the pid of the last holder.
class LockFile {
public:
    /// Errors: kResourceConflict naming the holder's pid; kPermissionDenied when the file cannot be
    /// made.
    [[nodiscard]] static Result<std::unique_ptr<LockFile>> take(const std::filesystem::path& path);
    ~LockFile();
    LockFile(const LockFile&) = delete;
    LockFile& operator=(const LockFile&) = delete;

private:
    explicit LockFile(int descriptor) : descriptor_(descriptor) {}
    int descriptor_;
};

}  // namespace tune::tracker
