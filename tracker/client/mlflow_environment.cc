// What MLflow's own client reads of the environment, in its order: a token, a name and password,
// the file of credentials; last our own server's token file. A script that works with MLflow's
// server therefore needs no other settings for ours.

#include "tracker/client/mlflow_environment.h"

#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/text/base64.h"
#include "base/text/text.h"
#include "tracker/client/local_servers.h"

namespace tune::tracker {
namespace {

/// A line beyond this is no credential.
constexpr std::size_t kLineBytesMax = 64 << 10;

std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr ? value : "";
}

struct Login {
    std::string username;
    std::string password;
};

/// The section [mlflow] of an INI file as Python's configparser reads it; '%%' is one '%'.
Login read_credentials(const std::string& path) {
    Login login;
    std::ifstream in(path);
    bool is_ours = false;
    for (std::string whole; std::getline(in, whole) && whole.size() <= kLineBytesMax;) {
        const std::string_view line = trimmed(whole);
        if (line.empty() || line.front() == '#' || line.front() == ';') continue;
        if (line.front() == '[') {
            is_ours = line == "[mlflow]";
            continue;
        }
        const std::size_t sign = line.find_first_of("=:");
        if (!is_ours || sign == std::string_view::npos) continue;
        const std::string key = lower_ascii(trimmed(line.substr(0, sign)));
        std::string value(trimmed(line.substr(sign + 1)));
        for (std::size_t at = 0; (at = value.find("%%", at)) != std::string::npos; ++at)
            value.erase(at, 1);
        if (key == "mlflow_tracking_username") login.username = value;
        if (key == "mlflow_tracking_password") login.password = value;
    }
    return login;
}

Result<bool> is_insecure() {
    constexpr const char* kName = "MLFLOW_TRACKING_INSECURE_TLS";
    if (std::getenv(kName) == nullptr) return false;
    const std::string value = lower_ascii(variable(kName));
    if (value == "true" || value == "1") return true;
    if (value == "false" || value == "0") return false;
    return Error{Code::kInvalidParameterValue,
                 std::string(kName) + " is '" + value + "'; it must be true or false"};
}

}  // namespace

Result<void> read_mlflow_environment(ClientOptions& options) {
    Login login;
    const std::string home = variable("HOME");
    if (!home.empty()) login = read_credentials(home + "/.mlflow/credentials");
    const std::string username = variable("MLFLOW_TRACKING_USERNAME");
    const std::string password = variable("MLFLOW_TRACKING_PASSWORD");
    if (!username.empty()) login.username = username;
    if (!password.empty()) login.password = password;
    const std::string token = variable("MLFLOW_TRACKING_TOKEN");
    if (!login.username.empty() && !login.password.empty())
        options.authorization = "Basic " + base64(login.username + ":" + login.password);
    else if (!token.empty())
        options.authorization = "Bearer " + token;

    TUNE_TRY(insecure, is_insecure());
    options.tls.is_unverified = insecure;
    options.tls.client_certificate = variable("TUNE_CLIENT_CERT");
    if (options.tls.client_certificate.empty())
        options.tls.client_certificate = variable("MLFLOW_TRACKING_CLIENT_CERT_PATH");
    options.tls.ca_path = variable("MLFLOW_TRACKING_SERVER_CERT_PATH");
    if (insecure && !options.tls.ca_path.empty())
        return Error{Code::kInvalidParameterValue,
                     "MLFLOW_TRACKING_INSECURE_TLS and MLFLOW_TRACKING_SERVER_CERT_PATH contradict "
                     "each other; unset one of them"};
    if (const std::string own = variable("TUNE_CA_FILE"); !own.empty() && !insecure)
        options.tls.ca_path = own;
    for (const char* name : {"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"})
        if (!insecure && options.tls.ca_path.empty()) options.tls.ca_path = variable(name);
    return {};
}

Result<std::unique_ptr<Client>> create_client(ClientOptions options) {
    TUNE_TRY_VOID(read_mlflow_environment(options));
    // The token of a server of this user is for that server; what the environment says may be for
    // another one.
    if (std::string own = local_authorization(options.url); !own.empty())
        options.authorization = std::move(own);
    options.find_authorization = [url = options.url] { return local_authorization(url); };
    return Client::create(std::move(options));
}

}  // namespace tune::tracker
