#pragma once
// The environment of a trial. Pure but for reading this process's own environment.

#include <string>
#include <vector>

#include "tuner/protocol.h"
#include "worker/agent/devices/devices.h"

namespace tune::worker {

struct EnvironmentSpec {
    const tuner::Lease* lease = nullptr;
    const Assignment* assignment = nullptr;
    std::string server_url;
    std::string checkpoint_dir;
    std::string resume_dir;            // of the trial that this one continues; empty: none
    std::string bin_dir;               // first in PATH
    int cores = 1;                     // of the agent
    int slots = 1;                     // of the agent
    std::string artifact_dir = {};     // what is left there goes to the run's artifacts
    std::string model_dir = {};        // a model that is left there is logged
    std::string profile_request = {};  // a file that says when a trace is wanted
};

/// Threads for a trial: its own cores, or else its part of the agent's; at least 1.
[[nodiscard]] int threads_of(const EnvironmentSpec& spec);

/// "NAME=value" of each variable, each name once. Later ones win over earlier ones:
///  1. `inherited`, less MLFLOW_RUN_ID, MLFLOW_EXPERIMENT_ID, MLFLOW_EXPERIMENT_NAME and TUNE_...,
///     which would belong to somebody else;
///  2. PATH with `bin_dir` first; threads (OMP_NUM_THREADS, MKL_, OPENBLAS_, NUMEXPR_, VECLIB_),
///     PYTHONUNBUFFERED=1 (lines must come when they are printed, not 8 kB later);
///  3. the lease's own variables;
///  4. what identifies the attempt (MLFLOW_..., TUNE_...) and its GPUs. MLFLOW_TRACKING_TOKEN is
///     the attempt's own credential where the lease has one; else what was inherited stays, less
///     the credential of an outer trial;
///  5. for a server behind https://, the certificates by which this agent knows it and is known
///     (TUNE_CA_FILE, TUNE_CLIENT_CERT, MLFLOW_TRACKING_SERVER_CERT_PATH, _CLIENT_CERT_PATH).
/// OMP_WAIT_POLICY=PASSIVE only for several threads on shared cores: threads that spin there make
/// their neighbours 10-40 times slower, while sleeping threads make a lone trial 5 times slower.
[[nodiscard]] std::vector<std::string> trial_environment(const std::vector<std::string>& inherited,
                                                         const EnvironmentSpec& spec);

/// This process's environment.
[[nodiscard]] std::vector<std::string> own_environment();

/// The value of a variable in such a list; empty if it is absent.
[[nodiscard]] std::string variable(const std::vector<std::string>& environment,
                                   const std::string& name);

}  // namespace tune::worker
