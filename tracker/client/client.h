#pragma once
// A small REST client for this server or any MLflow server: JSON calls and file uploads over one
// kept-alive connection.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace tune::tracker {

/// Whom to believe behind https://.
struct TlsOptions {
    /// A file or folder of certificates that are trusted; empty: the system's.
    std::string ca_path = {};
    /// A PEM file with our own certificate and its key, for servers that want one.
    std::string client_certificate = {};
    /// Anybody may answer. For tests.
    bool is_unverified = false;
};

struct ClientOptions {
    /// "http://host:port" or "https://...", with an optional path prefix. Other schemes are
    /// refused.
    std::string url;
    /// For calls that give none. Counts from the call to the whole answer, of one attempt.
    int timeout_ms = 30'000;
    /// Further attempts after a connection failure or 408, 429, 502, 503, 504, with exponential
    /// backoff and jitter (Retry-After is respected, at most 30 s). Calls of JSON that may change
    /// something bear one Idempotency-Key for all their attempts, so that our server carries them
    /// out once; calls to others that are not idempotent should use a client with 0.
    int retries = 4;
    int backoff_first_ms = 100;
    int backoff_max_ms = 5'000;
    /// An answer larger than this is refused.
    std::size_t answer_bytes_max = 64u << 20;
    std::string user_agent = "tune";
    /// Value of the Authorization header, e.g. "Bearer ..."; empty: none.
    std::string authorization = {};
    /// Where the authorization is looked up anew after a 401, empty for "no other": a server that
    /// starts after its client has a token by then. May be called on any thread that makes a call.
    std::function<std::string()> find_authorization = {};
    TlsOptions tls = {};
};

/// One connection, one call at a time: calls from several threads wait for each other, so give each
/// long-poll its own Client. cancel() may come from any thread.
class Client {
public:
    /// Does not connect yet. Errors: kInvalidParameterValue for a URL it cannot use, certificates
    /// that cannot be read, an authorization with control characters; kNotImplemented for https://
    /// without libcurl.
    [[nodiscard]] static Result<std::unique_ptr<Client>> create(ClientOptions options);
    ~Client();
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    // `path` begins with '/', e.g. "/api/2.0/mlflow/runs/get?run_id=..."; it is sent as given, so
    // encode it with percent_encode. An empty answer reads as {}.
    //
    // Errors, with method and path as context: those that the server answers (its error_code and
    // message; by status when the body is no JSON); kTemporarilyUnavailable when it cannot be
    // reached after all attempts; kPermissionDenied when its certificate is not trusted;
    // kDeadlineExceeded; kCancelled; kDataLoss for an answer that is not JSON.
    [[nodiscard]] Result<Json> get(std::string_view path, int timeout_ms = 0);
    [[nodiscard]] Result<Json> post(std::string_view path, const Json& body, int timeout_ms = 0);
    [[nodiscard]] Result<Json> patch(std::string_view path, const Json& body, int timeout_ms = 0);
    [[nodiscard]] Result<Json> remove(std::string_view path, const Json& body, int timeout_ms = 0);

    /// Gives the answer's body to `sink` in pieces, never whole in memory; a `sink` that fails ends
    /// the call with its error. What was given cannot be taken back: after the first piece there is
    /// no other attempt. `timeout_ms` counts between two pieces.
    using Sink = std::function<Result<void>(std::string_view bytes)>;
    [[nodiscard]] Result<void> get_file(std::string_view path, const Sink& sink,
                                        int timeout_ms = 0);

    /// Sends the file's first `bytes_max` bytes as the body of a PUT, in pieces, never whole in
    /// memory: a log that grows meanwhile is sent up to the size it had at the start. `timeout_ms`
    /// counts between two pieces. Errors also: kResourceDoesNotExist if the file cannot be opened.
    [[nodiscard]] Result<void> put_file(std::string_view path, const std::filesystem::path& file,
                                        std::uint64_t bytes_max = UINT64_MAX, int timeout_ms = 0);
    /// Adds the file's bytes from `begin` to `end` to what the server has of it, by a PUT with a
    /// Content-Range. A repeat is fine. REQUIRES: begin < end. Errors also: kResourceConflict when
    /// the server has less than `begin` bytes, kResourceDoesNotExist when it has nothing.
    [[nodiscard]] Result<void> append_file(std::string_view path, const std::filesystem::path& file,
                                           std::uint64_t begin, std::uint64_t end,
                                           int timeout_ms = 0);
    /// The same as put_file with content that is in memory.
    [[nodiscard]] Result<void> put_bytes(std::string_view path, std::string_view content,
                                         int timeout_ms = 0);

    /// Ends the running call, and every later one, with kCancelled. Idempotent; does not block.
    void cancel();

private:
    struct State;
    explicit Client(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace tune::tracker
