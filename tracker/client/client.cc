// A call is repeated when the server was not reached or answered with a status that asks for it,
// and never once a byte of the response went to the caller's sink. Changes bear a key, one a call,
// by which the server knows a repeat: the first may have been carried out and its answer lost.
// Pauses grow with a random half, and cancel() ends any of them.

#include "tracker/client/client.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>

#include "base/id.h"
#include "tracker/client/connection.h"
#include "tracker/client/curl_transport.h"

namespace tune::tracker {
namespace {

constexpr std::size_t kPieceBytes = 256 << 10;
constexpr int kRetryAfterMax_ms = 30'000;
/// Of a key: enough for no two calls to have the same.
constexpr std::size_t kKeyBytes = 16;

class MemoryBody final : public BodySource {
public:
    explicit MemoryBody(std::string_view text) : text_(text) {}
    std::uint64_t size_bytes() const override { return text_.size(); }
    Result<std::string_view> next() override {
        const std::string_view piece = text_.substr(at_, kPieceBytes);
        at_ += piece.size();
        return piece;
    }
    void rewind() override { at_ = 0; }

private:
    std::string_view text_;
    std::size_t at_ = 0;
};

class FileBody final : public BodySource {
public:
    FileBody(int fd, std::uint64_t begin, std::uint64_t size_bytes)
        : fd_(fd), begin_(begin), size_bytes_(size_bytes) {}
    ~FileBody() override { ::close(fd_); }
    FileBody(const FileBody&) = delete;
    FileBody& operator=(const FileBody&) = delete;

    std::uint64_t size_bytes() const override { return size_bytes_; }
    Result<std::string_view> next() override {
        buffer_.resize(
            static_cast<std::size_t>(std::min<std::uint64_t>(kPieceBytes, size_bytes_ - at_)));
        ssize_t got = 0;
        do {
            got = ::pread(fd_, buffer_.data(), buffer_.size(), static_cast<off_t>(begin_ + at_));
        } while (got < 0 && errno == EINTR);
        if (got < 0) return Error{Code::kInternalError, std::strerror(errno)};
        at_ += static_cast<std::uint64_t>(got);
        return std::string_view(buffer_).substr(0, static_cast<std::size_t>(got));
    }
    void rewind() override { at_ = 0; }

private:
    int fd_;
    std::uint64_t begin_;
    std::uint64_t size_bytes_;
    std::uint64_t at_ = 0;  // from begin_
    std::string buffer_;
};

/// What lies in the file from `begin`, up to `end` at most.
Result<std::unique_ptr<FileBody>> open_body(const std::filesystem::path& file, std::uint64_t begin,
                                            std::uint64_t end) {
    const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status {};
    if (fd < 0 || ::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        const std::string why = fd < 0 ? std::strerror(errno) : "it is not a regular file";
        if (fd >= 0) ::close(fd);
        return Error{Code::kResourceDoesNotExist, "cannot read the file: " + why, file.string()};
    }
    end = std::max(begin, std::min(end, static_cast<std::uint64_t>(status.st_size)));
    return std::make_unique<FileBody>(fd, begin, end - begin);
}

bool is_worth_retrying(int status) {
    return status == 408 || status == 429 || status == 502 || status == 503 || status == 504;
}

Code code_of_status(int status) {
    switch (status) {
        case 400: return Code::kBadRequest;
        case 401: return Code::kUnauthenticated;
        case 403: return Code::kPermissionDenied;
        case 404: return Code::kEndpointNotFound;
        case 409: return Code::kResourceConflict;
        case 413: return Code::kRequestEntityTooLarge;
        case 429: return Code::kRequestLimitExceeded;
        case 501: return Code::kNotImplemented;
        case 503: return Code::kTemporarilyUnavailable;
        case 408:
        case 504: return Code::kDeadlineExceeded;
        default: return Code::kInternalError;
    }
}

/// The server's error response, as an Error.
Error error_of(const HttpResponse& answer) {
    const Result<Json> body = parse_json(answer.body);
    Error error{code_of_status(answer.status), "HTTP status " + std::to_string(answer.status)};
    if (answer.status / 100 == 3 && !answer.location.empty()) {
        error.message += ": the server says that it is at '" + answer.location.substr(0, 200) +
                         "'; redirects are not followed, give that server's address";
        return error;
    }
    if (!body || !body->is_object()) {
        if (!answer.body.empty()) error.message += ": " + answer.body.substr(0, 200);
        return error;
    }
    const auto code = body->find("error_code");
    if (code != body->end() && code->is_string()) {
        const Code named = code_from_name(code->get<std::string>());
        if (named != Code::kInternalError || answer.status >= 500) error.code = named;
    }
    const auto message = body->find("message");
    if (message != body->end() && message->is_string()) error.message = message->get<std::string>();
    return error;
}

Error error_of(const AttemptError& failed) {
    switch (failed.failure) {
        case Failure::kTimeout: return {Code::kDeadlineExceeded, failed.text};
        case Failure::kCancelled: return {Code::kCancelled, failed.text};
        case Failure::kUntrusted: return {Code::kPermissionDenied, failed.text};
        case Failure::kBroken: return {Code::kDataLoss, failed.text};
        case Failure::kUnreachable: break;
    }
    return {Code::kTemporarilyUnavailable, "the server cannot be reached (" + failed.text +
                                               "); check its address and that it runs"};
}

}  // namespace

struct Client::State {
    State(ClientOptions client_options, std::unique_ptr<Transport> transport)
        : options(std::move(client_options)),
          connection(std::move(transport)),
          random(std::random_device{}()) {}

    Result<std::string> call(Outgoing request);
    Result<Json> call_json(std::string_view method, std::string_view path, const Json* body,
                           int timeout_ms);
    Result<void> upload(std::string_view path, BodySource& body, int timeout_ms,
                        std::string_view content_range = {});
    bool find_other_authorization();
    int backoff_ms(int attempt, int retry_after_s);
    void pause(int pause_ms);

    ClientOptions options;
    std::mutex one_call;
    const std::unique_ptr<Transport> connection;
    std::minstd_rand random;
    std::mutex pause_mutex;
    std::condition_variable pause_end;
};

/// Exponential, with the upper half random so that many clients do not come back together.
int Client::State::backoff_ms(int attempt, int retry_after_s) {
    if (retry_after_s >= 0)
        return static_cast<int>(std::min<std::int64_t>(kRetryAfterMax_ms, retry_after_s * 1000LL));
    const std::int64_t grown = static_cast<std::int64_t>(options.backoff_first_ms)
                               << std::min(attempt, 16);
    const int whole = static_cast<int>(std::min<std::int64_t>(grown, options.backoff_max_ms));
    std::uniform_int_distribution<int> half(whole / 2, std::max(whole, 1));
    return half(random);
}

/// Whether there is an authorization now that was not sent yet. REQUIRES: one_call is held.
bool Client::State::find_other_authorization() {
    if (!options.find_authorization) return false;
    std::string found = options.find_authorization();
    if (found.empty() || found == options.authorization) return false;
    options.authorization = std::move(found);
    return true;
}

void Client::State::pause(int pause_ms) {
    std::unique_lock lock(pause_mutex);
    pause_end.wait_for(lock, std::chrono::milliseconds(pause_ms),
                       [this] { return connection->is_cancelled(); });
}

Result<std::string> Client::State::call(Outgoing request) {
    const std::lock_guard lock(one_call);
    if (request.timeout_ms <= 0) request.timeout_ms = options.timeout_ms;
    const std::string context = std::string(request.method) + " " + std::string(request.target);
    for (int attempt = 0;; ++attempt) {
        HttpResponse answer;
        AttemptError failed;
        Error error;
        bool again = false;
        request.authorization = options.authorization;
        if (connection->is_cancelled()) {
            error = {Code::kCancelled, "cancelled"};
        } else if (!connection->exchange(request, answer, failed)) {
            error = error_of(failed);
            again = failed.failure == Failure::kUnreachable && answer.sunk_bytes == 0;
        } else if (answer.sink_error) {
            error = std::move(*answer.sink_error);
        } else if (answer.status / 100 == 2) {
            return std::move(answer.body);
        } else if (answer.status == 401 && find_other_authorization()) {
            --attempt;  // a first attempt with it
            continue;
        } else {
            error = error_of(answer);
            again = is_worth_retrying(answer.status);
        }
        if (!again || attempt >= options.retries) {
            error.context = context;
            return error;
        }
        pause(backoff_ms(attempt, answer.retry_after_s));
    }
}

Result<Json> Client::State::call_json(std::string_view method, std::string_view path,
                                      const Json* body, int timeout_ms) {
    const std::string text = body ? to_text(*body) : std::string();
    MemoryBody source(text);
    Outgoing request;
    request.method = method;
    request.target = path;
    request.timeout_ms = timeout_ms;
    // Without it only who never repeats: a record of each answer costs the server a little.
    const bool may_repeat = options.retries > 0 && method != "GET";
    const std::string key = may_repeat ? random_hex(kKeyBytes) : std::string();
    request.idempotency_key = key;
    if (body) {
        request.content_type = "application/json";
        request.body = &source;
    }
    TUNE_TRY(answer, call(request));
    if (answer.empty()) return Json::object();
    Result<Json> json = parse_json(answer);
    if (json) return json;
    return Error{Code::kDataLoss, "the answer is not JSON: " + json.error().message,
                 std::string(method) + " " + std::string(path)};
}

Result<void> Client::State::upload(std::string_view path, BodySource& body, int timeout_ms,
                                   std::string_view content_range) {
    Outgoing request;
    request.method = "PUT";
    request.target = path;
    request.content_type = "application/octet-stream";
    request.content_range = content_range;
    request.body = &body;
    request.timeout_ms = timeout_ms;
    request.timeout_is_per_piece = true;
    TUNE_TRY_VOID(call(request));
    return {};
}

Client::Client(std::unique_ptr<State> state) : state_(std::move(state)) {}
Client::~Client() = default;

Result<std::unique_ptr<Client>> Client::create(ClientOptions options) {
    TUNE_TRY(url, parse_url(options.url));
    const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
    if (std::any_of(options.authorization.begin(), options.authorization.end(), is_control))
        return Error{Code::kInvalidParameterValue,
                     "the token, or the user name and password, for '" + options.url +
                         "' holds a line break or another control character"};
    TransportOptions sending{options.user_agent, options.answer_bytes_max};
    std::unique_ptr<Transport> transport;
    if (url.is_tls) {
        TUNE_TRY(secured, make_curl_transport(url, std::move(sending), options.tls));
        transport = std::move(secured);
    } else {
        transport = std::make_unique<ClientConnection>(std::move(url), std::move(sending));
    }
    return std::unique_ptr<Client>(
        new Client(std::make_unique<State>(std::move(options), std::move(transport))));
}

Result<Json> Client::get(std::string_view path, int timeout_ms) {
    return state_->call_json("GET", path, nullptr, timeout_ms);
}

Result<Json> Client::post(std::string_view path, const Json& body, int timeout_ms) {
    return state_->call_json("POST", path, &body, timeout_ms);
}

Result<Json> Client::patch(std::string_view path, const Json& body, int timeout_ms) {
    return state_->call_json("PATCH", path, &body, timeout_ms);
}

Result<Json> Client::remove(std::string_view path, const Json& body, int timeout_ms) {
    return state_->call_json("DELETE", path, &body, timeout_ms);
}

Result<void> Client::put_file(std::string_view path, const std::filesystem::path& file,
                              std::uint64_t bytes_max, int timeout_ms) {
    TUNE_TRY(body, open_body(file, 0, bytes_max));
    return state_->upload(path, *body, timeout_ms);
}

Result<void> Client::append_file(std::string_view path, const std::filesystem::path& file,
                                 std::uint64_t begin, std::uint64_t end, int timeout_ms) {
    TUNE_TRY(body, open_body(file, begin, end));
    if (body->size_bytes() != end - begin)
        return Error{Code::kDataLoss, "the file became shorter", file.string()};
    const std::string range =
        "bytes " + std::to_string(begin) + "-" + std::to_string(end - 1) + "/*";
    return state_->upload(path, *body, timeout_ms, range);
}

Result<void> Client::get_file(std::string_view path, const Sink& sink, int timeout_ms) {
    Outgoing request;
    request.method = "GET";
    request.target = path;
    request.sink = &sink;
    request.timeout_ms = timeout_ms;
    request.timeout_is_per_piece = true;
    TUNE_TRY_VOID(state_->call(request));
    return {};
}

Result<void> Client::put_bytes(std::string_view path, std::string_view content, int timeout_ms) {
    MemoryBody body(content);
    return state_->upload(path, body, timeout_ms);
}

void Client::cancel() {
    state_->connection->cancel();
    const std::lock_guard lock(state_->pause_mutex);
    state_->pause_end.notify_all();
}

}  // namespace tune::tracker
