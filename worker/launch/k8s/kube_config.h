#pragma once
// How a cluster is reached: a kubeconfig as kubectl reads it, or the service account of the pod
// that we run in.

#include <filesystem>
#include <string>

#include "base/result.h"

namespace tune::launch {

struct KubeAccess {
    std::string server = {};  ///< https://HOST:PORT
    std::string name_space = "default";
    std::string token = {};  ///< bearer token; empty: the client certificate says who we are
    std::string ca_file = {};
    std::string client_certificate = {};  ///< PEM with certificate and key
    bool is_unverified = false;
};

struct KubeConfigOptions {
    std::string file = {};  ///< empty: the first of KUBECONFIG, else ~/.kube/config, else the pod's
    std::string context = {};  ///< empty: the current one
    /// Where data that stands in the file is written for the client: a private folder.
    std::filesystem::path scratch = {};
};

/// Reads tokens and certificates, from files, from the text or from a credential program (`exec`,
/// run now: it may ask a cloud for a token). Anchors in the file are not understood. Errors:
/// kInvalidParameterValue with the file and what is missing in it.
[[nodiscard]] Result<KubeAccess> read_kube_config(const KubeConfigOptions& options);

}  // namespace tune::launch
