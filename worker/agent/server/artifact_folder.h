#pragma once
// Artifacts that the server serves, by the locations that it names.

#include <string>

#include "base/result.h"

namespace tune::worker {

inline constexpr const char* kArtifactsPath = "/api/2.0/mlflow-artifacts/artifacts/";

/// "mlflow-artifacts:/1" or "mlflow-artifacts://host:port/1" -> "1": the folder below
/// kArtifactsPath. Errors: kInvalidParameterValue for a location of another scheme; `what` stays
/// on this machine then.
[[nodiscard]] Result<std::string> proxied_folder(std::string location, const std::string& what);

}  // namespace tune::worker
