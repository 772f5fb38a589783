#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include "base/result.h"

namespace tune::loader {

/// A whole file, mapped for reading. Immutable, thread-safe. The file must not be made shorter
/// while it is mapped (a read beyond its end would end the process with SIGBUS); replacing it by
/// rename, or unlinking it, is harmless.
class MappedFile {
public:
    /// Errors: kResourceDoesNotExist, or kInternalError with the system's reason; each names the
    /// path.
    [[nodiscard]] static Result<std::shared_ptr<const MappedFile>> open(
        const std::filesystem::path& path);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

    /// Asks the kernel to read the file ahead; returns at once.
    void read_ahead() const;

private:
    explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
    std::span<const std::byte> bytes_;
};

}  // namespace tune::loader
