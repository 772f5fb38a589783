// libcurl is loaded when the first https:// URL is used, so programs that need none do not depend
// on it. A wait ends at the deadline or by cancel(), whatever libcurl is doing; what its callbacks
// refer to lives until the transfer is removed.

#include "tracker/client/curl_transport.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "tracker/curl/curl_library.h"
#include "tracker/curl/header_line.h"

namespace tune::tracker {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// A wait ends at least so often to look at the deadline; cancel() ends it at once.
constexpr int kPollMax_ms = 1'000;

Result<void> check_readable(const std::string& path, const char* what) {
    std::error_code ignored;
    const bool is_there = std::filesystem::exists(path, ignored);
    if (is_there && ::access(path.c_str(), R_OK) == 0) return {};
    return Error{Code::kInvalidParameterValue, std::string(what) + " '" + path + "' " +
                                                   (is_there ? "cannot be read" : "is not there")};
}

/// One request under way, as libcurl's callbacks see it.
struct Exchange {
    const Outgoing& request;
    HttpResponse& answer;
    std::size_t answer_bytes_max;
    SteadyClock::time_point deadline = {};
    std::string_view piece = {};  // of the body, not yet sent
    std::size_t header_bytes = 0;
    std::string broken = {};  // why the exchange was ended by us

    void move_deadline() {
        deadline = SteadyClock::now() + std::chrono::milliseconds(request.timeout_ms);
    }

    static std::size_t give(char* to, std::size_t size, std::size_t count, void* self);
    static int rewind(void* self, curl_off_t offset, int origin);
    static std::size_t take_header(char* data, std::size_t size, std::size_t count, void* self);
    static std::size_t take_body(char* data, std::size_t size, std::size_t count, void* self);
};

std::size_t Exchange::give(char* to, std::size_t size, std::size_t count, void* self) {
    auto& at = *static_cast<Exchange*>(self);
    if (at.request.timeout_is_per_piece) at.move_deadline();
    if (at.piece.empty()) {
        const Result<std::string_view> next = at.request.body->next();
        if (!next) {
            at.broken = next.error().text();
            return CURL_READFUNC_ABORT;
        }
        at.piece = *next;
    }
    const std::size_t given = std::min(size * count, at.piece.size());
    std::memcpy(to, at.piece.data(), given);
    at.piece.remove_prefix(given);
    return given;
}

/// For a body that has to be sent again because a kept-alive connection was closed.
int Exchange::rewind(void* self, curl_off_t offset, int origin) {
    auto& at = *static_cast<Exchange*>(self);
    if (offset != 0 || origin != SEEK_SET) return CURL_SEEKFUNC_CANTSEEK;
    at.request.body->rewind();
    at.piece = {};
    return CURL_SEEKFUNC_OK;
}

std::size_t Exchange::take_header(char* data, std::size_t size, std::size_t count, void* self) {
    auto& at = *static_cast<Exchange*>(self);
    const std::string_view line(data, size * count);
    at.header_bytes += line.size();
    if (at.header_bytes > kAnswerHeaderBytesMax) {
        at.broken = "the headers of the answer are too long";
        return 0;
    }
    if (line.starts_with("HTTP/")) {
        const std::size_t space = std::min(line.find(' '), line.size() - 1);
        std::from_chars(line.data() + space + 1, line.data() + line.size(), at.answer.status);
        at.answer.retry_after_s = -1;
        at.answer.location.clear();
    } else if (const auto wait = header_value(line, "retry-after")) {
        std::from_chars(wait->data(), wait->data() + wait->size(), at.answer.retry_after_s);
    } else if (const auto location = header_value(line, "location")) {
        at.answer.location = *location;
    }
    return line.size();
}

/// Returning less than was offered ends the transfer.
std::size_t Exchange::take_body(char* data, std::size_t size, std::size_t count, void* self) {
    auto& at = *static_cast<Exchange*>(self);
    const std::string_view bytes(data, size * count);
    std::string& body = at.answer.body;
    if (at.request.timeout_is_per_piece) at.move_deadline();
    if (at.request.sink == nullptr) {
        if (bytes.size() > at.answer_bytes_max - body.size()) {
            at.broken =
                "the answer is longer than " + std::to_string(at.answer_bytes_max) + " bytes";
            return 0;
        }
        body += bytes;
        return bytes.size();
    }
    if (at.answer.status / 100 != 2) {
        body += bytes.substr(0, kErrorBodyBytesMax - std::min(kErrorBodyBytesMax, body.size()));
        return bytes.size();
    }
    at.answer.sunk_bytes += bytes.size();
    if (Result<void> taken = (*at.request.sink)(bytes); !taken) {
        at.answer.sink_error = std::move(taken).error();
        return 0;
    }
    return bytes.size();
}

class CurlTransport final : public Transport {
public:
    CurlTransport(const CurlLibrary& curl, const UrlParts& url, TransportOptions options,
                  TlsOptions tls)
        : curl_(curl),
          base_("https://" + url.authority + url.prefix),
          options_(std::move(options)),
          tls_(std::move(tls)),
          tls_is_folder_(!tls_.ca_path.empty() && std::filesystem::is_directory(tls_.ca_path)),
          multi_(curl.multi_init()) {}
    ~CurlTransport() override { curl_.multi_cleanup(multi_); }
    CurlTransport(const CurlTransport&) = delete;
    CurlTransport& operator=(const CurlTransport&) = delete;

    bool exchange(const Outgoing& request, HttpResponse& answer, AttemptError& error) override;
    void cancel() override {
        is_cancelled_ = true;
        curl_.multi_wakeup(multi_);
    }
    bool is_cancelled() const override { return is_cancelled_; }

private:
    bool set_up(CURL* easy, curl_slist*& headers, Exchange& exchange, const std::string& url);
    bool set_tls(CURL* easy);
    bool set_body(CURL* easy, Exchange& exchange);
    /// Until libcurl is done (its code), the deadline or cancel() (nothing).
    std::optional<CURLcode> drive(const Exchange& exchange);
    [[nodiscard]] AttemptError error_of(CURLcode code, const char* reason) const;

    const CurlLibrary& curl_;
    const std::string base_;
    const TransportOptions options_;
    const TlsOptions tls_;
    const bool tls_is_folder_;
    CURLM* const multi_;  // keeps the connection between exchanges
    std::atomic<bool> is_cancelled_{false};
};

bool CurlTransport::set_tls(CURL* easy) {
    const OptionSetter set{curl_, easy};
    bool ok = set(CURLOPT_SSL_VERIFYPEER, tls_.is_unverified ? 0L : 1L) &&
              set(CURLOPT_SSL_VERIFYHOST, tls_.is_unverified ? 0L : 2L) &&
              set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    if (!tls_.ca_path.empty()) {
        // What is named stands alone: without this the system's would be trusted beside it.
        const char* const path = tls_.ca_path.c_str();
        const char* const none = nullptr;
        ok = ok && set(CURLOPT_CAINFO, tls_is_folder_ ? none : path) &&
             set(CURLOPT_CAPATH, tls_is_folder_ ? path : none);
    }
    if (!tls_.client_certificate.empty())
        ok = ok && set(CURLOPT_SSLCERT, tls_.client_certificate.c_str()) &&
             set(CURLOPT_SSLKEY, tls_.client_certificate.c_str());
    return ok;
}

bool CurlTransport::set_body(CURL* easy, Exchange& exchange) {
    const OptionSetter set{curl_, easy};
    const Outgoing& request = exchange.request;
    const std::string method(request.method);
    if (request.body == nullptr)
        return method == "GET" || set(CURLOPT_CUSTOMREQUEST, method.c_str());
    request.body->rewind();
    return set(CURLOPT_UPLOAD, 1L) && set(CURLOPT_CUSTOMREQUEST, method.c_str()) &&
           set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body->size_bytes())) &&
           set(CURLOPT_READFUNCTION, &Exchange::give) &&
           set(CURLOPT_READDATA, static_cast<void*>(&exchange)) &&
           set(CURLOPT_SEEKFUNCTION, &Exchange::rewind) &&
           set(CURLOPT_SEEKDATA, static_cast<void*>(&exchange));
}

bool CurlTransport::set_up(CURL* easy, curl_slist*& headers, Exchange& exchange,
                           const std::string& url) {
    const Outgoing& request = exchange.request;
    std::vector<std::string> lines = {"Expect:"};
    if (request.body != nullptr)
        lines.push_back("Content-Type: " + std::string(request.content_type));
    if (!request.content_range.empty())
        lines.push_back("Content-Range: " + std::string(request.content_range));
    if (!request.authorization.empty())
        lines.push_back("Authorization: " + std::string(request.authorization));
    if (!request.idempotency_key.empty())
        lines.push_back("Idempotency-Key: " + std::string(request.idempotency_key));
    for (const std::string& line : lines) headers = curl_.slist_append(headers, line.c_str());
    const OptionSetter set{curl_, easy};
    return set(CURLOPT_URL, url.c_str()) && set(CURLOPT_PROTOCOLS_STR, "https") &&
           // Sent as given: the caller has encoded it.
           set(CURLOPT_PATH_AS_IS, 1L) && set(CURLOPT_FOLLOWLOCATION, 0L) &&
           set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1)) &&
           set(CURLOPT_HTTPHEADER, headers) &&
           set(CURLOPT_USERAGENT, options_.user_agent.c_str()) && set(CURLOPT_NOSIGNAL, 1L) &&
           set(CURLOPT_TCP_KEEPALIVE, 1L) && set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L) &&
           // A look-up that hangs must not hold up the end of the program.
           set(CURLOPT_QUICK_EXIT, 1L) && set(CURLOPT_HEADERFUNCTION, &Exchange::take_header) &&
           set(CURLOPT_HEADERDATA, static_cast<void*>(&exchange)) &&
           set(CURLOPT_WRITEFUNCTION, &Exchange::take_body) &&
           set(CURLOPT_WRITEDATA, static_cast<void*>(&exchange)) && set_tls(easy) &&
           set_body(easy, exchange);
}

std::optional<CURLcode> CurlTransport::drive(const Exchange& exchange) {
    for (;;) {
        int running = 0;
        int waiting = 0;
        curl_.multi_perform(multi_, &running);
        if (const CURLMsg* message = curl_.multi_info_read(multi_, &waiting))
            return message->data.result;
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(exchange.deadline - SteadyClock::now());
        if (is_cancelled_ || left.count() <= 0) return std::nullopt;
        const int wait_ms = static_cast<int>(std::min<std::int64_t>(left.count(), kPollMax_ms));
        curl_.multi_poll(multi_, nullptr, 0, wait_ms, nullptr);
    }
}

AttemptError CurlTransport::error_of(CURLcode code, const char* reason) const {
    const std::string text = reason[0] != '\0' ? reason : curl_.easy_strerror(code);
    switch (code) {
        case CURLE_PEER_FAILED_VERIFICATION:
            return {Failure::kUntrusted,
                    "the certificate of " + base_ + " is not trusted (" + text +
                        "). If its authority is your own, name the file of its certificates with "
                        "--ca, in TUNE_CA_FILE or in MLFLOW_TRACKING_SERVER_CERT_PATH"};
        case CURLE_SSL_CACERT_BADFILE:
            return {Failure::kUntrusted,
                    "the certificates of trusted authorities cannot be read (" + text +
                        "). Install Debian's ca-certificates package, or name a file of "
                        "certificates in MLFLOW_TRACKING_SERVER_CERT_PATH"};
        case CURLE_SSL_CERTPROBLEM:
            return {Failure::kUntrusted, "our certificate '" + tls_.client_certificate +
                                             "' cannot be used (" + text + ")"};
        case CURLE_SSL_CONNECT_ERROR:
            return {Failure::kUnreachable,
                    "no TLS connection: " + text +
                        "; it may speak plain http://, or have a forged certificate"};
        case CURLE_WEIRD_SERVER_REPLY:
        case CURLE_UNSUPPORTED_PROTOCOL: return {Failure::kBroken, text};
        default: return {Failure::kUnreachable, text};
    }
}

bool CurlTransport::exchange(const Outgoing& request, HttpResponse& answer, AttemptError& error) {
    CURL* const easy = curl_.easy_init();
    curl_slist* headers = nullptr;
    char reason[CURL_ERROR_SIZE] = {};
    Exchange at{request, answer, options_.answer_bytes_max};
    at.move_deadline();
    std::optional<CURLcode> code = CURLE_FAILED_INIT;
    if (easy != nullptr && set_up(easy, headers, at, base_ + std::string(request.target)) &&
        curl_.easy_setopt(easy, CURLOPT_ERRORBUFFER, static_cast<char*>(reason)) == CURLE_OK &&
        curl_.multi_add_handle(multi_, easy) == CURLM_OK) {
        code = drive(at);
        curl_.multi_remove_handle(multi_, easy);
    }
    if (easy != nullptr) curl_.easy_cleanup(easy);
    curl_.slist_free_all(headers);
    if (!code && is_cancelled_) {
        error = {Failure::kCancelled, "cancelled"};
    } else if (!code) {
        error = {Failure::kTimeout,
                 "no answer within " + std::to_string(request.timeout_ms) + " ms"};
    } else if (!at.broken.empty()) {
        error = {Failure::kBroken, at.broken};
    } else if (*code != CURLE_OK && !answer.sink_error) {
        error = error_of(*code, reason);
    } else {
        return true;
    }
    return false;
}

}  // namespace

Result<std::unique_ptr<Transport>> make_curl_transport(const UrlParts& url,
                                                       TransportOptions options, TlsOptions tls) {
    TUNE_TRY(curl, CurlLibrary::get());
    if (!tls.ca_path.empty())
        TUNE_TRY_VOID(check_readable(tls.ca_path, "the certificates of trusted authorities"));
    if (!tls.client_certificate.empty())
        TUNE_TRY_VOID(check_readable(tls.client_certificate, "our certificate"));
    return std::unique_ptr<Transport>(
        std::make_unique<CurlTransport>(*curl, url, std::move(options), std::move(tls)));
}

}  // namespace tune::tracker
