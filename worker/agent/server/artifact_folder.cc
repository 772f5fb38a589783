#include "worker/agent/server/artifact_folder.h"

#include <string_view>

namespace tune::worker {

Result<std::string> proxied_folder(std::string location, const std::string& what) {
    constexpr std::string_view kProxyScheme = "mlflow-artifacts:";
    if (!location.starts_with(kProxyScheme))
        return Error{Code::kInvalidParameterValue,
                     "the experiment keeps its artifacts at '" + location +
                         "', which the server does not serve; " + what + " stay on this machine"};
    location.erase(0, kProxyScheme.size());
    if (location.starts_with("//")) {
        const std::size_t slash = location.find('/', 2);
        location = slash == std::string::npos ? "" : location.substr(slash);
    }
    while (location.starts_with('/')) location.erase(0, 1);
    return location;
}

}  // namespace tune::worker
