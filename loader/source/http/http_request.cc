// One easy handle a request, from a pool that keeps connections open. libcurl's own stall detection
// counts whole seconds and cannot be told to stop, so the progress callback, which it calls at
// least once a second, watches the last byte's time and the stop signal.

#include "loader/source/http/http_request.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "base/text/text.h"

namespace tune::loader {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kRefusalBytesMax = std::size_t{16} << 10;

/// What the callbacks of one request share.
struct Transfer {
    const HttpRequest& request;
    HttpResponse& response;
    const SourceOptions& options;
    Clock::time_point last_byte = Clock::now();
    curl_off_t bytes = 0;  // both ways
    bool is_accepted = false;
    bool is_refused = false;  // by the caller
    bool has_stalled = false;
};

std::size_t on_header(char* data, std::size_t size, std::size_t count, void* user) {
    auto& transfer = *static_cast<Transfer*>(user);
    const std::string_view line = trimmed({data, size * count});
    transfer.last_byte = Clock::now();
    if (line.starts_with("HTTP/")) {  // of the next answer: a redirect came before
        transfer.response = {};
        const std::string_view status = line.substr(std::min(line.find(' ') + 1, line.size()));
        std::from_chars(status.data(), status.data() + status.size(), transfer.response.status);
        return size * count;
    }
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos)
        transfer.response.headers[lower_ascii(line.substr(0, colon))] =
            std::string(trimmed(line.substr(colon + 1)));
    return size * count;
}

std::size_t on_body(char* data, std::size_t size, std::size_t count, void* user) {
    auto& transfer = *static_cast<Transfer*>(user);
    transfer.last_byte = Clock::now();
    if (transfer.response.status >= 300) {
        std::string& refusal = transfer.response.refusal;
        if (transfer.response.status >= 400)
            refusal.append(data, std::min(size * count, kRefusalBytesMax - refusal.size()));
        return size * count;
    }
    if (!transfer.is_accepted && transfer.request.accept &&
        !transfer.request.accept(transfer.response)) {
        transfer.is_refused = true;
        return 0;
    }
    transfer.is_accepted = true;
    const auto bytes = std::as_bytes(std::span(data, size * count));
    if (!transfer.request.body || transfer.request.body(bytes)) return size * count;
    transfer.is_refused = true;
    return 0;
}

int on_progress(void* user, curl_off_t /*total*/, curl_off_t got, curl_off_t /*total*/,
                curl_off_t sent) {
    auto& transfer = *static_cast<Transfer*>(user);
    if (transfer.options.stop && transfer.options.stop->is_set()) return 1;
    if (got + sent != transfer.bytes) {
        transfer.bytes = got + sent;
        transfer.last_byte = Clock::now();
    }
    const std::chrono::duration<double> silent = Clock::now() - transfer.last_byte;
    transfer.has_stalled = silent.count() > transfer.options.download_timeout_s;
    return transfer.has_stalled ? 1 : 0;
}

std::string seconds_text(double seconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", seconds);
    return text;
}

double retry_after(const HttpResponse& response) {
    const std::string text = response.header("retry-after");
    double seconds = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error == std::errc{} && end == text.data() + text.size()) return std::max(seconds, 0.0);
    const std::time_t date = ::curl_getdate(text.c_str(), nullptr);
    return date < 0 ? 0 : std::max(std::difftime(date, std::time(nullptr)), 0.0);
}

std::string shown_name(const HttpRequest& request) {
    return "'" + (request.name.empty() ? public_url(request.url) : request.name) + "'";
}

AttemptFailure status_failure(const HttpRequest& request, const HttpResponse& response) {
    const long status = response.status;
    const std::string where = shown_name(request);
    const std::string verb = request.method.empty() ? "read" : "written";
    const std::string said = " (HTTP status " + std::to_string(status) + ")";
    if (status == 404 || status == 410)
        return {{Code::kResourceDoesNotExist, where + " does not exist" + said}};
    if (status == 401)
        return {{Code::kUnauthenticated,
                 where + " cannot be " + verb +
                     ": it wants credentials, or does not take those it was given" + said}};
    if (status == 403)
        return {{Code::kPermissionDenied,
                 where + " cannot be " + verb + " with these credentials" + said}};
    if (status == 412) return {{Code::kDataLoss, where + " was changed while it was read" + said}};
    if (status == 416) return {{Code::kDataLoss, where + " is shorter than it was" + said}};
    const bool may_pass = status == 408 || status == 425 || status == 429 || status >= 500;
    return {{may_pass ? Code::kTemporarilyUnavailable : Code::kBadRequest,
             where + " cannot be " + verb + said},
            may_pass && status != 501 && status != 505,
            retry_after(response)};
}

AttemptFailure transfer_failure(const Transfer& transfer, CURLcode code) {
    std::string reason = ::curl_easy_strerror(code);
    if (transfer.has_stalled)
        reason = "no byte came for " + seconds_text(transfer.options.download_timeout_s) + " s";
    const bool may_pass = code != CURLE_UNSUPPORTED_PROTOCOL && code != CURLE_URL_MALFORMAT &&
                          code != CURLE_PEER_FAILED_VERIFICATION &&
                          code != CURLE_TOO_MANY_REDIRECTS;
    return {{may_pass ? Code::kTemporarilyUnavailable : Code::kBadRequest,
             shown_name(transfer.request) + " cannot be " +
                 (transfer.request.method.empty() ? "read: " : "written: ") + reason},
            may_pass};
}

bool set_body(CURL* easy, const HttpRequest& request) {
    if (request.method.empty()) return true;
    return ::curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                              static_cast<curl_off_t>(request.sent.size())) == CURLE_OK &&
           ::curl_easy_setopt(
               easy, CURLOPT_POSTFIELDS,
               request.sent.empty() ? "" : reinterpret_cast<const char*>(request.sent.data())) ==
               CURLE_OK &&
           ::curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str()) == CURLE_OK;
}

bool set_options(CURL* easy, Transfer& transfer, curl_slist* headers) {
    const auto set = [easy](CURLoption option, auto value) {
        return ::curl_easy_setopt(easy, option, value) == CURLE_OK;
    };
    const auto timeout_ms =
        static_cast<long>(std::ceil(std::min(transfer.options.download_timeout_s, 3600.0) * 1e3));
    return set(CURLOPT_URL, transfer.request.url.c_str()) && set(CURLOPT_NOSIGNAL, 1L) &&
           set(CURLOPT_NOBODY, transfer.request.is_head ? 1L : 0L) &&
           set_body(easy, transfer.request) && set(CURLOPT_HTTPHEADER, headers) &&
           set(CURLOPT_FOLLOWLOCATION, transfer.request.follows_redirects ? 1L : 0L) &&
           set(CURLOPT_MAXREDIRS, 10L) && set(CURLOPT_PROTOCOLS_STR, "http,https") &&
           set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https") &&
           set(CURLOPT_CONNECTTIMEOUT_MS, timeout_ms) && set(CURLOPT_BUFFERSIZE, 256L << 10) &&
           set(CURLOPT_TCP_KEEPALIVE, 1L) && set(CURLOPT_NETRC, long{CURL_NETRC_OPTIONAL}) &&
           set(CURLOPT_USERAGENT, "tune") && set(CURLOPT_HEADERFUNCTION, &on_header) &&
           set(CURLOPT_HEADERDATA, &transfer) && set(CURLOPT_WRITEFUNCTION, &on_body) &&
           set(CURLOPT_WRITEDATA, &transfer) && set(CURLOPT_NOPROGRESS, 0L) &&
           set(CURLOPT_XFERINFOFUNCTION, &on_progress) && set(CURLOPT_XFERINFODATA, &transfer);
}

}  // namespace

std::string public_url(std::string_view url) {
    std::string text(url.substr(0, url.find_first_of("?#")));
    const std::size_t host = text.find("://");
    const std::size_t slash = host == std::string::npos ? host : text.find('/', host + 3);
    const std::size_t at = text.rfind('@', slash);
    if (host != std::string::npos && at != std::string::npos && at > host)
        text.erase(host + 3, at + 1 - host - 3);
    return text;
}

std::string HttpResponse::header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string() : found->second;
}

HttpClient::HttpClient(SourceOptions options, HttpLogin login)
    : options_(std::move(options)), login_(std::move(login)) {
    static const bool is_initialised = ::curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    static_cast<void>(is_initialised);
}

HttpClient::~HttpClient() {
    for (CURL* const easy : idle_) ::curl_easy_cleanup(easy);
}

CURL* HttpClient::take() {
    {
        const std::lock_guard lock(mutex_);
        if (!idle_.empty()) {
            CURL* const easy = idle_.back();
            idle_.pop_back();
            return easy;
        }
    }
    return ::curl_easy_init();
}

void HttpClient::put_back(CURL* easy) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(easy);
}

std::optional<AttemptFailure> HttpClient::send(const HttpRequest& wanted, HttpResponse& response) {
    HttpRequest request = wanted;
    if (login_)
        if (Result<void> login = login_(request); !login) {
            Error error = std::move(login).error();
            error.message = shown_name(request) + " cannot be asked for: " + error.message;
            return AttemptFailure{std::move(error)};
        }
    CURL* const easy = take();
    if (!easy) return AttemptFailure{{Code::kResourceExhausted, "libcurl: out of memory"}};
    response = {};
    Transfer transfer{request, response, options_};
    curl_slist* headers = nullptr;
    if (!request.method.empty()) headers = ::curl_slist_append(headers, "Expect:");
    for (const std::string& header : request.headers)
        headers = ::curl_slist_append(headers, header.c_str());
    ::curl_easy_reset(easy);
    CURLcode code = CURLE_FAILED_INIT;
    if (set_options(easy, transfer, headers)) code = ::curl_easy_perform(easy);
    ::curl_slist_free_all(headers);
    put_back(easy);
    if (transfer.is_refused) return {};  // the caller knows why
    if (code != CURLE_OK) return transfer_failure(transfer, code);
    if (response.status >= 400) return status_failure(request, response);
    return {};
}

Result<std::string> send_for_text(HttpClient& client, HttpRequest request, HttpResponse& response,
                                  std::size_t bytes_max) {
    std::string text;
    request.body = [&](std::span<const std::byte> piece) {
        text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
        return text.size() <= bytes_max;
    };
    TUNE_TRY_VOID(with_retries(client.options(), [&]() -> std::optional<AttemptFailure> {
        text.clear();
        if (std::optional<AttemptFailure> failure = client.send(request, response)) return failure;
        if (text.size() <= bytes_max) return {};
        return AttemptFailure{{Code::kResourceExhausted, shown_name(request) +
                                                             " gave an answer of more than " +
                                                             std::to_string(bytes_max) + " bytes"}};
    }));
    return text;
}

}  // namespace tune::loader
