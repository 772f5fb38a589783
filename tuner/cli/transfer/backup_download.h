#pragma once
// `tune backup --server`: a backup that a server has made, as a file here.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/result.h"

namespace tune::cli {

/// Copies the backup `name` of the server at `url` into the new file `file` and deletes it there.
/// `report` is told the bytes so far and ends the copy with kCancelled by false. Errors:
/// kResourceAlreadyExists when there is such a file; kDataLoss when other than `size_bytes` came;
/// those of the client and of the disk. Nothing remains then but the server's copy. Blocks.
[[nodiscard]] Result<void> download_backup(const std::string& url, const std::string& name,
                                           std::uint64_t size_bytes,
                                           const std::filesystem::path& file,
                                           const std::function<bool(std::uint64_t bytes)>& report);

}  // namespace tune::cli
