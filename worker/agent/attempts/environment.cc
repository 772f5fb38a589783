// What a trial's process finds in its environment: that of the agent without what names another
// trial, then its share of the machine, then the study's own settings, then which trial it is. The
// later wins, so a study may set its threads but never pose as another trial.

#include "worker/agent/attempts/environment.h"

#include <unistd.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string_view>

namespace tune::worker {
namespace {

using Variables = std::map<std::string, std::string>;

bool belongs_to_another(std::string_view name) {
    return name.starts_with("TUNE_") || name == "MLFLOW_RUN_ID" || name == "MLFLOW_EXPERIMENT_ID" ||
           name == "MLFLOW_EXPERIMENT_NAME";
}

/// The credential of a trial that this agent itself was started by.
bool is_outer_credential(std::string_view name, std::string_view value) {
    return name == "MLFLOW_TRACKING_TOKEN" && value.starts_with(tuner::kAttemptTokenPrefix);
}

void add_threads(const EnvironmentSpec& spec, Variables& variables) {
    const int threads = threads_of(spec);
    for (const char* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS",
                             "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"})
        variables[name] = std::to_string(threads);
    const bool shares_cores = spec.slots > 1 && spec.assignment->cores.empty();
    if (threads > 1 && shares_cores) variables["OMP_WAIT_POLICY"] = "PASSIVE";
}

void add_path(const EnvironmentSpec& spec, Variables& variables) {
    const auto path = variables.find("PATH");
    const std::string rest =
        path == variables.end() ? "/usr/local/bin:/usr/bin:/bin" : path->second;
    if (!spec.bin_dir.empty()) variables["PATH"] = spec.bin_dir + ":" + rest;
}

/// The first of these variables that is set, or empty.
std::string first_set(const Variables& variables, std::initializer_list<const char*> names) {
    for (const char* name : names)
        if (const auto found = variables.find(name);
            found != variables.end() && !found->second.empty())
            return found->second;
    return {};
}

/// Whom the agent believes and what it shows behind https://, for the trial's clients: MLflow's
/// know neither our variables nor SSL_CERT_FILE. Nothing else of the trial is changed: what it
/// downloads from elsewhere is not signed by the server's authority.
void add_tls(const Variables& outer, Variables& variables) {
    for (const char* name : {"TUNE_CA_FILE", "TUNE_CLIENT_CERT"})
        if (const auto found = outer.find(name); found != outer.end())
            variables[name] = found->second;
    const std::string shown = first_set(variables, {"TUNE_CLIENT_CERT"});
    if (!shown.empty()) variables["MLFLOW_TRACKING_CLIENT_CERT_PATH"] = shown;
    const std::string trusted =
        first_set(variables, {"TUNE_CA_FILE", "MLFLOW_TRACKING_SERVER_CERT_PATH",
                              "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"});
    if (!trusted.empty() && !variables.contains("MLFLOW_TRACKING_INSECURE_TLS"))
        variables["MLFLOW_TRACKING_SERVER_CERT_PATH"] = trusted;
}

void add_identity(const EnvironmentSpec& spec, Variables& variables) {
    const tuner::Lease& lease = *spec.lease;
    variables["MLFLOW_TRACKING_URI"] = spec.server_url;
    variables["MLFLOW_RUN_ID"] = lease.run_id;
    variables["MLFLOW_EXPERIMENT_ID"] = lease.experiment_id;
    if (!lease.token.empty()) variables["MLFLOW_TRACKING_TOKEN"] = lease.token;
    variables["TUNE_STUDY"] = lease.study;
    variables["TUNE_PARAMS"] = lease.params_json;
    variables["TUNE_TRIAL"] = std::to_string(lease.number);
    variables["TUNE_ATTEMPT"] = std::to_string(lease.attempt);
    variables["TUNE_SEED"] = std::to_string(lease.seed);
    variables["TUNE_CHECKPOINT_DIR"] = spec.checkpoint_dir;
    if (!spec.artifact_dir.empty()) variables["TUNE_ARTIFACT_DIR"] = spec.artifact_dir;
    if (!spec.model_dir.empty()) variables["TUNE_MODEL_DIR"] = spec.model_dir;
    if (!spec.profile_request.empty()) variables["TUNE_PROFILE_REQUEST"] = spec.profile_request;
    if (!spec.resume_dir.empty()) variables["TUNE_RESUME_FROM"] = spec.resume_dir;
    if (lease.memory_bytes > 0) variables["TUNE_MEMORY_BYTES"] = std::to_string(lease.memory_bytes);
    if (!lease.devices.empty() && lease.devices.front().bytes > 0)
        variables["TUNE_GPU_MEMORY_BYTES"] = std::to_string(lease.devices.front().bytes);
    if (spec.assignment->gpus.empty()) return;
    std::string uuids;
    for (const std::string& uuid : spec.assignment->gpus)
        uuids += (uuids.empty() ? "" : ",") + uuid;
    variables["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
    variables["CUDA_VISIBLE_DEVICES"] = uuids;
    variables["NVIDIA_VISIBLE_DEVICES"] = uuids;
}

}  // namespace

int threads_of(const EnvironmentSpec& spec) {
    if (spec.lease->pool) {
        tuner::Lease process = *spec.lease;
        process.pool.reset();
        EnvironmentSpec whole = spec;
        whole.lease = &process;
        return std::max(1, threads_of(whole) / std::max(1, spec.lease->pool->size));
    }
    const int nproc = spec.lease->gang ? std::max(1, spec.lease->gang->nproc) : 1;
    const int own = static_cast<int>(spec.assignment->cores.size());
    if (own > 0) return std::max(1, own / nproc);
    if (spec.lease->cpus_per_trial > 0)  // below one core
        return std::max(1, static_cast<int>(spec.lease->cpus_per_trial));
    return std::max(1, spec.cores / std::max({1, spec.slots, nproc}));
}

std::vector<std::string> trial_environment(const std::vector<std::string>& inherited,
                                           const EnvironmentSpec& spec) {
    Variables variables;
    Variables outer;
    for (const std::string& assignment : inherited) {
        const std::size_t at = assignment.find('=');
        if (at == std::string::npos || at == 0) continue;
        std::string name = assignment.substr(0, at);
        std::string value = assignment.substr(at + 1);
        const bool is_kept = !belongs_to_another(name) && !is_outer_credential(name, value);
        (is_kept ? variables : outer)[std::move(name)] = std::move(value);
    }
    variables.emplace("PYTHONUNBUFFERED", "1");
    add_threads(spec, variables);
    for (const tuner::EnvironmentVariable& given : spec.lease->env)
        variables[given.name] = given.value;
    add_path(spec, variables);
    if (spec.server_url.starts_with("https://")) add_tls(outer, variables);
    add_identity(spec, variables);
    std::vector<std::string> list;
    list.reserve(variables.size());
    for (const auto& [name, value] : variables) list.push_back(name + "=" + value);
    return list;
}

std::vector<std::string> own_environment() {
    std::vector<std::string> list;
    for (char** at = environ; at != nullptr && *at != nullptr; ++at) list.emplace_back(*at);
    return list;
}

std::string variable(const std::vector<std::string>& environment, const std::string& name) {
    for (const std::string& assignment : environment)
        if (assignment.starts_with(name + "=")) return assignment.substr(name.size() + 1);
    return {};
}

}  // namespace tune::worker
