#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tracker/transfer/source/source.h"

namespace tune::tracker {

struct SourceOptions {
    /// An mlflow.db, "sqlite:///path", a folder (mlruns, or one that holds mlruns), or the address
    /// of a server.
    std::string name;
    /// Folders whose artifacts may be read, besides those beside the source.
    std::vector<std::filesystem::path> artifact_roots = {};
};

/// The path that `name` means; nothing for the address of a server.
[[nodiscard]] std::optional<std::filesystem::path> path_of_source(const std::string& name);

/// The source that `name` means. Errors: kInvalidParameterValue for what is none of them; those of
/// the source.
[[nodiscard]] Result<std::unique_ptr<Source>> open_source(const SourceOptions& options);

}  // namespace tune::tracker
