// A kubeconfig names clusters, users and contexts; a context joins one of each. What the client
// needs as a file and the configuration has as text is written to a private folder.

#include "worker/launch/k8s/kube_config.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/system/file.h"
#include "base/system/unique_fd.h"
#include "base/text/base64.h"
#include "base/text/text.h"
#include "tuner/space/node.h"
#include "worker/launch/program.h"

namespace tune::launch {
namespace {

namespace kube_fs = std::filesystem;

constexpr std::size_t kConfigBytesMax = 4u << 20;
constexpr const char* kPodFolder = "/var/run/secrets/kubernetes.io/serviceaccount";

std::string kube_variable(const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr ? value : "";
}

std::string member(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

/// The part `inner` of the entry of this name in a list of {name, inner}.
Result<Json> entry_of(const Json& config, const char* list, const char* inner,
                      const std::string& name) {
    if (config.contains(list) && config[list].is_array())
        for (const Json& entry : config[list])
            if (entry.is_object() && member(entry, "name") == name && entry.contains(inner))
                return entry[inner];
    return Error{Code::kInvalidParameterValue,
                 std::string("it has no ") + inner + " '" + name + "'"};
}

Result<std::string> write_scratch(const kube_fs::path& folder, const std::string& name,
                                  const std::string& content) {
    std::error_code error;
    kube_fs::create_directories(folder, error);
    const kube_fs::path path = folder / name;
    kube_fs::remove(path, error);
    const UniqueFd file(
        open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file ||
        write(file.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size()))
        return Error{Code::kPermissionDenied, "cannot write " + path.string()};
    return path.string();
}

/// The text of KEY-data, or of the file KEY names; empty without either.
Result<std::string> data_of(const Json& object, const std::string& key, const kube_fs::path& base) {
    if (const std::string data = member(object, (key + "-data").c_str()); !data.empty()) {
        const auto decoded = base64_decode(data);
        if (decoded) return *decoded;
        return Error{Code::kInvalidParameterValue, key + "-data is not base64"};
    }
    const std::string file = member(object, key.c_str());
    if (file.empty()) return std::string();
    return read_file(base / file, kConfigBytesMax);
}

/// The token that a credential program prints (client.authentication.k8s.io).
Result<std::string> token_of_program(const Json& exec) {
    ProgramCall call;
    call.arguments = {member(exec, "command")};
    if (exec.contains("args"))
        for (const Json& word : exec["args"])
            if (word.is_string()) call.arguments.push_back(word.get<std::string>());
    if (exec.contains("env") && exec["env"].is_array())
        for (const Json& variable : exec["env"])
            call.environment.emplace_back(member(variable, "name"), member(variable, "value"));
    const Json info = {{"apiVersion", member(exec, "apiVersion")},
                       {"kind", "ExecCredential"},
                       {"spec", {{"interactive", false}}}};
    call.environment.emplace_back("KUBERNETES_EXEC_INFO", to_text(info));
    TUNE_TRY(output, output_of(call));
    TUNE_TRY(credential, parse_json(output));
    const std::string token = member(credential.value("status", Json::object()), "token");
    if (!token.empty()) return token;
    return Error{Code::kInvalidParameterValue,
                 "its credential program '" + call.arguments.front() + "' gave no token"};
}

Result<void> read_user(const Json& user, const KubeConfigOptions& options,
                       const kube_fs::path& base, KubeAccess& access) {
    access.token = member(user, "token");
    if (const std::string file = member(user, "tokenFile"); !file.empty()) {
        TUNE_TRY(token, read_file(base / file, kConfigBytesMax));
        access.token = trimmed(token);
    }
    if (access.token.empty() && user.contains("exec")) {
        TUNE_TRY(token, token_of_program(user["exec"]));
        access.token = token;
    }
    TUNE_TRY(certificate, data_of(user, "client-certificate", base));
    TUNE_TRY(key, data_of(user, "client-key", base));
    if (certificate.empty() || key.empty()) return {};
    TUNE_TRY(path, write_scratch(options.scratch, "kube-client.pem", certificate + "\n" + key));
    access.client_certificate = path;
    return {};
}

Result<KubeAccess> access_of(const Json& config, const KubeConfigOptions& options,
                             const kube_fs::path& base) {
    const std::string name =
        options.context.empty() ? member(config, "current-context") : options.context;
    TUNE_TRY(context, entry_of(config, "contexts", "context", name));
    TUNE_TRY(cluster, entry_of(config, "clusters", "cluster", member(context, "cluster")));
    TUNE_TRY(user, entry_of(config, "users", "user", member(context, "user")));
    KubeAccess access;
    access.server = member(cluster, "server");
    if (const std::string own = member(context, "namespace"); !own.empty()) access.name_space = own;
    access.is_unverified = cluster.value("insecure-skip-tls-verify", false);
    TUNE_TRY(authority, data_of(cluster, "certificate-authority", base));
    if (!authority.empty()) {
        TUNE_TRY(path, write_scratch(options.scratch, "kube-ca.pem", authority));
        access.ca_file = path;
    }
    TUNE_TRY_VOID(read_user(user, options, base, access));
    return access;
}

Result<KubeAccess> access_of_pod() {
    const std::string host = kube_variable("KUBERNETES_SERVICE_HOST");
    const kube_fs::path folder = kPodFolder;
    Result<std::string> token = read_file(folder / "token", kConfigBytesMax);
    if (host.empty() || !token)
        return Error{Code::kInvalidParameterValue,
                     "no cluster is known here: there is no ~/.kube/config, KUBECONFIG is not set, "
                     "and this is no pod with a service account; name a file with 'kubeconfig'"};
    KubeAccess access;
    access.server = "https://" + host + ":" + kube_variable("KUBERNETES_SERVICE_PORT");
    access.token = trimmed(*token);
    access.ca_file = folder / "ca.crt";
    access.name_space =
        trimmed(read_file(folder / "namespace", kConfigBytesMax).value_or("default"));
    return access;
}

}  // namespace

Result<KubeAccess> read_kube_config(const KubeConfigOptions& options) {
    std::string file = options.file;
    if (file.empty()) {
        file = kube_variable("KUBECONFIG");
        file = file.substr(0, file.find(':'));
    }
    if (file.empty()) {
        const std::string usual = kube_variable("HOME") + "/.kube/config";
        if (access(usual.c_str(), R_OK) != 0) return access_of_pod();
        file = usual;
    }
    TUNE_TRY(text, read_file(file, kConfigBytesMax));
    const Result<tuner::Node> node = tuner::read_yaml(text);
    if (!node) return Error{node.error().code, node.error().message, file};
    Result<KubeAccess> access =
        access_of(tuner::to_json(*node), options, kube_fs::absolute(file).parent_path());
    if (access) return access;
    return Error{access.error().code, file + ": " + access.error().message};
}

}  // namespace tune::launch
