#include "tracker/transfer/source/open_source.h"

#include <system_error>

#include "tracker/transfer/events/events_source.h"
#include "tracker/transfer/mlflow_db/mlflow_db_source.h"
#include "tracker/transfer/source/mlruns_source.h"
#include "tracker/transfer/source/remote_source.h"

namespace tune::tracker {
namespace {

namespace fs = std::filesystem;

/// "path" of "scheme:path" and of "scheme://path", as MLflow's URIs of stores are.
std::string without_scheme(const std::string& name) {
    for (const std::string_view scheme : {"sqlite://", "file://", "sqlite:", "file:"}) {
        if (!name.starts_with(scheme)) continue;
        // sqlite:///relative and sqlite:////absolute; file:///absolute.
        const bool is_sqlite = scheme == "sqlite://";
        return name.substr(scheme.size() + (is_sqlite && name.size() > scheme.size() ? 1 : 0));
    }
    return name;
}

}  // namespace

std::optional<fs::path> path_of_source(const std::string& name) {
    if (name.starts_with("http://") || name.starts_with("https://")) return std::nullopt;
    return without_scheme(name);
}

Result<std::unique_ptr<Source>> open_source(const SourceOptions& options) {
    const std::string& name = options.name;
    const std::optional<fs::path> local = path_of_source(name);
    if (!local) return open_remote(name);
    const fs::path& path = *local;
    std::error_code missing;
    if (fs::is_directory(path, missing) && is_event_folder(path)) return open_events(path);
    if (fs::is_directory(path, missing)) return open_mlruns({path, options.artifact_roots});
    if (fs::exists(path, missing)) return open_mlflow_db({path, options.artifact_roots});
    return Error{Code::kInvalidParameterValue,
                 "there is no '" + name +
                     "'; name an mlflow.db, a folder mlruns, one of "
                     "TensorBoard's event files, or the http:// or https:// address of a server"};
}

}  // namespace tune::tracker
