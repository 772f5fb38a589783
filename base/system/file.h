#pragma once
// Whole small files: configurations, indexes, manifests. Data that is large is streamed or mapped
// by its owner.

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tune {

/// kInternalError "cannot WHAT 'PATH': REASON", the reason as errno has it.
[[nodiscard]] Error system_error(std::string_view what, const std::filesystem::path& path);

/// The same; kResourceDoesNotExist if errno says that there is no such file.
[[nodiscard]] Error missing_or_system_error(std::string_view what,
                                            const std::filesystem::path& path);

/// The whole file. Errors: kResourceDoesNotExist if there is none, kResourceExhausted if it is
/// larger than `bytes_max`, kInternalError with the system's reason otherwise; each names the path.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path,
                                            std::size_t bytes_max = 256u << 20);

/// Writes all of `bytes`, in as many calls as it takes. False: errno says why.
[[nodiscard]] bool write_all(int fd, std::string_view bytes);

/// Replaces the file so that after a crash either the old or the new content is there whole: a
/// temporary file beside it, fsync, rename, fsync of the directory. Errors: kInternalError with
/// path and reason; nothing is left behind.
[[nodiscard]] Result<void> write_file_atomic(const std::filesystem::path& path,
                                             std::string_view content);

}  // namespace tune
