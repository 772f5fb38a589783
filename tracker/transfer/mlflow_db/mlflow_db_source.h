#pragma once
// An mlflow.db: the SQLite file of MLflow's SQL store, of any schema that has experiments and runs.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "tracker/transfer/source/source.h"

namespace tune::tracker {

struct MlflowDbOptions {
    std::filesystem::path file;
    /// Folders of artifacts besides mlartifacts and mlruns beside the file.
    std::vector<std::filesystem::path> artifact_roots = {};
    /// Look for damage first; reads the whole file once more.
    bool check = true;
};

/// Opens it for reading only; takes SQLite's read lock for one run at a time, so that a server of
/// MLflow that uses the file can keep working. Errors: kResourceDoesNotExist;
/// kInvalidParameterValue for what is not MLflow's; kDataLoss for a damaged file; kResourceConflict
/// when a write was broken off in it.
[[nodiscard]] Result<std::unique_ptr<Source>> open_mlflow_db(MlflowDbOptions options);

}  // namespace tune::tracker
