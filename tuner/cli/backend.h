#pragma once
// Where a verb gets its answers: a running server over REST, or a folder that no server holds. Both
// speak the same paths and JSON, so that no verb knows the difference.

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "tuner/cli/local_server.h"

namespace tune::cli {

class Backend {
public:
    virtual ~Backend() = default;
    /// `path` as in a URL, encoded. Errors: the server's, or kTemporarilyUnavailable when it cannot
    /// be reached.
    [[nodiscard]] virtual Result<Json> get(std::string_view path) = 0;
    [[nodiscard]] virtual Result<Json> post(std::string_view path, const Json& body) = 0;
    [[nodiscard]] virtual Result<Json> patch(std::string_view path, const Json& body) = 0;
    /// DELETE.
    [[nodiscard]] virtual Result<Json> remove(std::string_view path, const Json& body) = 0;
    [[nodiscard]] Result<Json> remove(std::string_view path) {
        return remove(path, Json::object());
    }
    /// "http://..." or the folder, for messages.
    [[nodiscard]] virtual std::string where() const = 0;
};

/// A server over REST. Does not connect yet. Errors: kInvalidParameterValue for a bad URL.
[[nodiscard]] Result<std::unique_ptr<Backend>> remote_backend(const std::string& url);

/// A server in this process, called without the network. `server` outlives it.
[[nodiscard]] std::unique_ptr<Backend> local_backend(LocalServer& server, std::string where);

/// How long a server that is named, or has said that it is there, may take: one that is busy is not
/// absent. Where nothing listens, that is known at once.
inline constexpr int kNamedServer_ms = 20'000;

/// That a `tune` server answers there within `timeout_ms`. Errors: why not.
[[nodiscard]] Result<void> check_server(const std::string& url, int timeout_ms);

/// For ls, show and so on: the server that is named; else the one that holds the folder that is
/// named; else the default server if it answers; else the default folder. Errors: one sentence that
/// says what was looked for and what to do.
[[nodiscard]] Result<std::unique_ptr<Backend>> find_backend(
    const std::optional<std::string>& server, const std::optional<std::string>& data);

/// "/api/2.0/tune/studies/<name><rest>", the name encoded.
[[nodiscard]] std::string study_path(std::string_view study, std::string_view rest = {});

}  // namespace tune::cli
