#pragma once
// One GET or HEAD by libcurl.

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
    [[nodiscard]] std::string header(const std::string& name) const;
};

struct HttpRequest {
    std::string url = {};
    bool is_head = false;
    /// "Name: value"
    std::vector<std::string> headers = {};
    /// Called with the status and headers before the first byte of the body; false ends the
    /// request.
    std::function<bool(const HttpResponse&)> accept = {};
    /// Called with each piece of the body; false ends the request.
    std::function<bool(std::span<const std::byte>)> body = {};
};

/// Connections that are kept for the next request. Thread-safe.
class HttpClient {
public:
    explicit HttpClient(SourceOptions options);
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
    std::mutex mutex_;
    std::vector<CURL*> idle_;  // guarded by mutex_
};

/// A URL without its query and user, for messages.
[[nodiscard]] std::string public_url(std::string_view url);

}  // namespace tune::loader
