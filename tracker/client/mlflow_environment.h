#pragma once
// Credentials and certificates where MLflow's own client looks for them.

#include <memory>

#include "base/result.h"
#include "tracker/client/client.h"

namespace tune::tracker {

/// Fills `authorization` and `tls` from MLFLOW_TRACKING_USERNAME with _PASSWORD (or the file
/// ~/.mlflow/credentials), else MLFLOW_TRACKING_TOKEN; MLFLOW_TRACKING_INSECURE_TLS,
/// _SERVER_CERT_PATH, _CLIENT_CERT_PATH; REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE. Our own TUNE_CA_FILE
/// and TUNE_CLIENT_CERT win over these; SSL_CERT_FILE comes last. Errors: kInvalidParameterValue
/// for values that contradict each other or mean nothing. Source:
/// mlflow/utils/credentials.py and rest_utils.py of 3.17.2.
[[nodiscard]] Result<void> read_mlflow_environment(ClientOptions& options);

/// A client with these options, those of the environment and local_authorization(), which wins: for
/// every address that a user gave.
/// Errors: those of read_mlflow_environment and Client::create.
[[nodiscard]] Result<std::unique_ptr<Client>> create_client(ClientOptions options);

}  // namespace tune::tracker
