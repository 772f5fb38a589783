#pragma once
// From the artifact URIs that the store keeps to paths under the artifact root.

#include <string>
#include <string_view>

#include "base/result.h"

namespace tune::tracker {

/// `path` in the folder that `artifact_uri` names (a run's, a logged model's, ...), checked and
/// joined. Errors: kInvalidParameterValue for a path that leads elsewhere, and for a URI that is
/// not of this server's artifact store.
[[nodiscard]] Result<std::string> path_in_artifacts(std::string_view artifact_uri,
                                                    std::string_view path);

/// Whether a folder of an experiment is named as a run is: 32 lower-case hexadecimal digits.
[[nodiscard]] bool is_run_folder(std::string_view name);

}  // namespace tune::tracker
