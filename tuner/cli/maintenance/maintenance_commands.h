#pragma once
// `tune gc`, `tune backup`, `tune restore`.

#include <optional>
#include <string>
#include <vector>

namespace tune::cli {

struct GcCommand {
    std::optional<std::string> server = {};
    std::optional<std::string> data = {};
    std::optional<std::string> older_than = {};  ///< default 30d, or 0s when something is named
    std::vector<std::string> run_ids = {};
    std::vector<std::string> experiment_ids = {};
    bool dry_run = false;
    bool json = false;
};

struct BackupCommand {
    std::string file = {};
    std::optional<std::string> server = {};  ///< makes the backup and sends it; else the folder
    std::string data = "./tune-data";
    bool with_artifacts = false;
    bool json = false;
};

struct RestoreCommand {
    std::string file = {};
    std::optional<std::string> study = {};  ///< bring this one back, instead of a file
    std::optional<std::string> server = {};
    std::string data = "./tune-data";
    bool force = false;
    bool json = false;
};

[[nodiscard]] int run_gc(const GcCommand& options);
/// Reads the folder itself, also while a server runs on it; or fetches a server's.
[[nodiscard]] int run_backup(const BackupCommand& options);
[[nodiscard]] int run_restore(const RestoreCommand& options);

}  // namespace tune::cli
