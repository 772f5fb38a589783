#pragma once
// All of a store as an mlflow.db with its artifacts beside it. Reads one snapshot of tune.db, so a
// server may keep writing meanwhile; its write-ahead log is not emptied before the export ends.

#include <filesystem>
#include <functional>

#include "base/result.h"
#include "tracker/transfer/importer.h"

namespace tune::tracker {

struct ExportOptions {
    std::filesystem::path data;  // folder of tune.db and artifacts/
    /// FILE.db, or a folder for mlflow.db. The folder mlartifacts lies beside it.
    std::filesystem::path target;
    ArtifactMode artifacts = ArtifactMode::kCopy;
    /// Addresses of artifacts as paths of mlartifacts, for clients that open the file themselves;
    /// else "mlflow-artifacts:/", for `mlflow server` started in that folder.
    bool local_uris = false;
    std::function<void(const TransferProgress&)> on_progress = {};
    std::function<bool()> is_cancelled = {};
};

/// The file appears whole under its name, after it was read back and compared. Errors:
/// kResourceAlreadyExists when it is there; kDataLoss when it reads back differently; kCancelled.
[[nodiscard]] Result<TransferReport> export_all(const ExportOptions& options);

/// The file that export_all makes.
[[nodiscard]] std::filesystem::path export_file(const std::filesystem::path& target);

}  // namespace tune::tracker
