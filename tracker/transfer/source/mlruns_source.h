#pragma once
// An mlruns folder: the files of MLflow's file store.

#include <filesystem>
#include <memory>
#include <vector>

#include "base/result.h"
#include "tracker/transfer/source/source.h"

namespace tune::tracker {

struct MlrunsOptions {
    /// mlruns itself, or a folder that holds it.
    std::filesystem::path folder;
    /// Folders of artifacts besides mlruns itself and mlartifacts beside it.
    std::vector<std::filesystem::path> artifact_roots = {};
};

/// Errors: kInvalidParameterValue when the folder holds no experiments; the system's reasons.
[[nodiscard]] Result<std::unique_ptr<Source>> open_mlruns(MlrunsOptions options);

}  // namespace tune::tracker
