#pragma once
// What is known of a checkpoint folder on this machine: <state>/<key>.json, apart from the folders,
// so that what is in them is the trials' alone. Where several agents share the folders, they share
// this too.

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "worker/agent/checkpoints/checkpoint_transfer.h"

namespace tune::worker {

struct FolderRecord {
    int attempt = 0;  // the last that ran with it here; 0: none
    StoredAt at = {};
};

/// `key`: that of tuner::Lease::checkpoint_dir. One that was never written, or is damaged, says
/// nothing. Errors of writing: kInternalError with path and reason.
[[nodiscard]] FolderRecord read_folder_record(const std::filesystem::path& state,
                                              const std::string& key);
[[nodiscard]] Result<void> write_folder_record(const std::filesystem::path& state,
                                               const std::string& key, const FolderRecord& record);
void remove_folder_record(const std::filesystem::path& state, const std::string& key);

[[nodiscard]] bool is_filled(const std::filesystem::path& folder);

/// A place for files on their way to or from the folder, on its file system.
[[nodiscard]] std::filesystem::path staging_folder(const std::filesystem::path& state,
                                                   const std::string& name);

}  // namespace tune::worker
