#include "tracker/api/artifacts/artifact_location.h"

#include "tracker/artifacts/artifact_path.h"

namespace tune::tracker {
namespace {

/// Where an artifact URI of ours lies under the artifact root.
Result<std::string> path_beneath_root(std::string_view uri) {
    constexpr std::string_view kScheme = "mlflow-artifacts:/";
    if (uri.starts_with(kScheme) && !uri.substr(kScheme.size()).starts_with('/'))
        return normal_artifact_path(uri.substr(kScheme.size()));
    return Error{Code::kInvalidParameterValue,
                 "These artifacts lie in '" + std::string(uri) +
                     "', not in this server's artifact store: open them where they are."};
}

}  // namespace

Result<std::string> path_in_artifacts(std::string_view artifact_uri, std::string_view path) {
    TUNE_TRY(base, path_beneath_root(artifact_uri));
    TUNE_TRY(relative, normal_artifact_path(path));
    return join_artifact_path(base, relative);
}

bool is_run_folder(std::string_view name) {
    constexpr std::size_t kRunIdDigits = 32;
    return name.size() == kRunIdDigits &&
           name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace tune::tracker
