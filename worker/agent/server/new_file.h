#pragma once
// A file of what the server sends.

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>

#include "base/result.h"
#include "base/system/file.h"
#include "base/system/unique_fd.h"

namespace tune::worker {

/// Writes what comes to a new file.
class NewFile {
public:
    explicit NewFile(const std::filesystem::path& path)
        : path_(path), file_(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {}

    [[nodiscard]] Result<void> add(std::string_view bytes) {
        if (!file_) return system_error("make", path_);
        if (!write_all(file_.get(), bytes)) return system_error("write", path_);
        return {};
    }
    /// All of it is on the disk.
    [[nodiscard]] Result<void> sync() {
        if (!file_) return system_error("make", path_);
        if (fsync(file_.get()) != 0) return system_error("write", path_);
        return {};
    }

private:
    const std::filesystem::path path_;
    UniqueFd file_;
};

}  // namespace tune::worker
