#pragma once
// Tokens that are asked for once and kept until shortly before they expire.

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"
#include "loader/source/open_source.h"

namespace tune::loader {

struct CloudToken {
    std::string text = {};
    double lives_s = 0;
};

/// Thread-safe; who asks while another thread fetches waits for that.
class TokenKeeper {
public:
    explicit TokenKeeper(std::function<Result<CloudToken>()> fetch) : fetch_(std::move(fetch)) {}

    /// Errors: those of the fetch, which is tried again by the next call.
    [[nodiscard]] Result<std::string> token();

private:
    const std::function<Result<CloudToken>()> fetch_;
    std::mutex mutex_;
    std::string text_;                                    // guarded by mutex_
    std::chrono::steady_clock::time_point renewal_ = {};  // guarded by mutex_
};

/// Google's application default credentials, as its own tools look for them: the file that
/// GOOGLE_APPLICATION_CREDENTIALS names, what `gcloud auth application-default login` wrote, the
/// metadata service of Google's machines where GCE_METADATA_HOST or KUBERNETES_SERVICE_HOST is set.
/// Files may be of a service account, a user, a federation of identities (by file or URL), or name
/// an account to act for. Nothing: nobody is logged in. Errors: a file that cannot be read or used.
[[nodiscard]] Result<std::shared_ptr<TokenKeeper>> google_login(const SourceOptions& options);

/// Azure's, likewise: a client's secret or a federated token by AZURE_TENANT_ID and
/// AZURE_CLIENT_ID, what `az login` knows, or the identity of the machine. Errors: none, at first.
[[nodiscard]] std::shared_ptr<TokenKeeper> azure_login(const SourceOptions& options);

}  // namespace tune::loader
