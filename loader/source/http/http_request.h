#pragma once
// One request by libcurl.

#include <curl/curl.h>

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loader/source/retry.h"

namespace tune::loader {

struct HttpResponse {
    long status = 0;
    /// Of the last answer (after redirects), names in lower case.
    std::map<std::string, std::string> headers = {};
    /// The beginning of what came with a status of 400 or more: some services say why.
    std::string refusal = {};
    [[nodiscard]] std::string header(const std::string& name) const;
};

struct HttpRequest {
    std::string url = {};
    /// Of the object in messages; empty: the URL without its query.
    std::string name = {};
    bool is_head = false;
    /// False: an answer that redirects is the answer, with its header "location".
    bool follows_redirects = true;
    /// "Name: value"
    std::vector<std::string> headers = {};
    /// With a body that is sent, which may be empty: "POST", "PUT" or "DELETE". Empty: GET, or
    /// HEAD.
    std::string method = {};
    std::span<const std::byte> sent = {};
    /// Called with the status and headers before the first byte of the body; false ends the
    /// request.
    std::function<bool(const HttpResponse&)> accept = {};
    /// Called with each piece of the body; false ends the request.
    std::function<bool(std::span<const std::byte>)> body = {};
};

/// Adds to a request what proves who asks. Called for each attempt anew, on any thread.
using HttpLogin = std::function<Result<void>(HttpRequest&)>;

/// Connections that are kept for the next request. Thread-safe.
class HttpClient {
public:
    explicit HttpClient(SourceOptions options, HttpLogin login = {});
    ~HttpClient();
    HttpClient(const HttpClient&) = delete;
    HttpClient& operator=(const HttpClient&) = delete;

    /// One attempt. Follows redirects to http and https; an Authorization header goes to the first
    /// host only. A failure is a connection that could not be made, was cut or stalled for
    /// options.download_timeout_s, or a status of 400 and above. A request that its callbacks ended
    /// is no failure.
    [[nodiscard]] std::optional<AttemptFailure> send(const HttpRequest& request,
                                                     HttpResponse& response);

    [[nodiscard]] const SourceOptions& options() const { return options_; }

private:
    [[nodiscard]] CURL* take();
    void put_back(CURL* easy);

    const SourceOptions options_;
    const HttpLogin login_;
    std::mutex mutex_;
    std::vector<CURL*> idle_;  // guarded by mutex_
};

/// The whole body of a GET, or the answer to what `request` sends, with retries. Errors: those of
/// send(); kResourceExhausted when it is longer than `bytes_max`.
[[nodiscard]] Result<std::string> send_for_text(HttpClient& client, HttpRequest request,
                                                HttpResponse& response,
                                                std::size_t bytes_max = std::size_t{64} << 20);

/// A URL without its query and user, for messages.
[[nodiscard]] std::string public_url(std::string_view url);

}  // namespace tune::loader
