// The check of the address runs in curl's open-socket callback, on the very address that connect()
// gets: no name is looked up again in between, so DNS rebinding gains nothing. Each transfer owns
// its buffers and ends exactly once, by finish().

#include "tracker/webhooks/post_client.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>

#include "tracker/curl/curl_library.h"
#include "tracker/curl/header_line.h"
#include "tracker/webhooks/address.h"

namespace tune::tracker {
namespace {

/// Connections kept open for the next delivery to the same receiver.
constexpr long kIdleConnectionsMax = 8;
constexpr long kConnectTimeout_ms = 10'000;

}  // namespace

struct PostClient::Transfer {
    const CurlLibrary& curl;
    CURL* easy = nullptr;
    curl_slist* headers = nullptr;
    PostRequest request;
    Done done;
    PostResponse answer;
    bool allow_private = false;
    std::size_t header_bytes = 0;
    std::string refused_address;
    char reason[CURL_ERROR_SIZE] = {};

    explicit Transfer(const CurlLibrary& library) : curl(library) {}
    ~Transfer() {
        if (easy != nullptr) curl.easy_cleanup(easy);
        curl.slist_free_all(headers);
    }
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;

    static curl_socket_t open_socket(void* self, curlsocktype purpose, curl_sockaddr* address);
    static std::size_t take_body(char* data, std::size_t size, std::size_t count, void* self);
    static std::size_t take_header(char* data, std::size_t size, std::size_t count, void* self);
    bool prepare(const PostOptions& options);
    void finish(CURLcode code);
};

/// The address is the one that connect() gets next: between this check and the connection no name
/// is looked up again, so a name that changes its address (DNS rebinding) gains nothing.
curl_socket_t PostClient::Transfer::open_socket(void* self, curlsocktype purpose,
                                                curl_sockaddr* address) {
    auto& transfer = *static_cast<Transfer*>(self);
    const bool is_ip = address->family == AF_INET || address->family == AF_INET6;
    const bool is_allowed = purpose == CURLSOCKTYPE_IPCXN && is_ip &&
                            (transfer.allow_private || is_public_address(address->addr));
    if (!is_allowed) {
        transfer.refused_address = address_text(address->addr);
        return CURL_SOCKET_BAD;
    }
    return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/// Returning less than was offered ends the transfer: the status is all that is still wanted.
std::size_t PostClient::Transfer::take_body(char* data, std::size_t size, std::size_t count,
                                            void* self) {
    std::string& body = static_cast<Transfer*>(self)->answer.body;
    const std::size_t offered = size * count;
    const std::size_t taken = std::min(offered, kReceiverAnswerBytesMax - body.size());
    body.append(data, taken);
    return taken;
}

std::size_t PostClient::Transfer::take_header(char* data, std::size_t size, std::size_t count,
                                              void* self) {
    auto& transfer = *static_cast<Transfer*>(self);
    const std::string_view line(data, size * count);
    transfer.header_bytes += line.size();
    if (transfer.header_bytes > kAnswerHeaderBytesMax) return 0;
    const std::optional<std::string_view> value = header_value(line, "Retry-After");
    if (!value) return line.size();
    int seconds = 0;
    if (std::from_chars(value->data(), value->data() + value->size(), seconds).ec == std::errc{} &&
        seconds >= 0)
        transfer.answer.retry_after_s = seconds;
    return line.size();
}

bool PostClient::Transfer::prepare(const PostOptions& options) {
    easy = curl.easy_init();
    if (easy == nullptr) return false;
    allow_private = options.policy.allow_private;
    for (const std::string& header : request.headers)
        headers = curl.slist_append(headers, header.c_str());
    headers = curl.slist_append(headers, "Expect:");
    const OptionSetter set{curl, easy};
    const long body_bytes = static_cast<long>(request.body.size());
    return set(CURLOPT_URL, request.url.c_str()) && set(CURLOPT_POST, 1L) &&
           set(CURLOPT_POSTFIELDSIZE, body_bytes) &&
           set(CURLOPT_POSTFIELDS, request.body.c_str()) && set(CURLOPT_HTTPHEADER, headers) &&
           set(CURLOPT_USERAGENT, "tune-webhook/1") && set(CURLOPT_NOSIGNAL, 1L) &&
           // A look-up that hangs must not hold up the end of the program.
           set(CURLOPT_QUICK_EXIT, 1L) &&
           set(CURLOPT_PROTOCOLS_STR, options.policy.allow_http ? "http,https" : "https") &&
           set(CURLOPT_FOLLOWLOCATION, 0L) && set(CURLOPT_PROXY, "") &&
           set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1)) &&
           set(CURLOPT_TIMEOUT_MS, static_cast<long>(options.timeout_ms)) &&
           set(CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeout_ms) &&
           set(CURLOPT_OPENSOCKETFUNCTION, &Transfer::open_socket) &&
           set(CURLOPT_OPENSOCKETDATA, static_cast<void*>(this)) &&
           set(CURLOPT_WRITEFUNCTION, &Transfer::take_body) &&
           set(CURLOPT_WRITEDATA, static_cast<void*>(this)) &&
           set(CURLOPT_HEADERFUNCTION, &Transfer::take_header) &&
           set(CURLOPT_HEADERDATA, static_cast<void*>(this)) &&
           set(CURLOPT_ERRORBUFFER, static_cast<char*>(reason)) &&
           set(CURLOPT_PRIVATE, static_cast<void*>(this)) &&
           (options.ca_file.empty() || set(CURLOPT_CAINFO, options.ca_file.c_str()));
}

void PostClient::Transfer::finish(CURLcode code) {
    long status = 0;
    curl.easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    const bool is_cut = code == CURLE_WRITE_ERROR && answer.body.size() == kReceiverAnswerBytesMax;
    if (!refused_address.empty() && status == 0) {
        answer.is_refused = true;
        answer.error = "Webhook connection blocked: " + refused_address +
                       " is not a public IP address. This may indicate a DNS rebinding attempt.";
    } else if (code == CURLE_OK || is_cut) {
        answer.status = static_cast<int>(status);
    } else {
        answer.is_refused = code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_URL_MALFORMAT;
        answer.error = reason[0] != '\0' ? reason : curl.easy_strerror(code);
    }
    done(std::move(answer));
}

struct PostClient::State {
    State(const CurlLibrary& library, PostOptions post_options)
        : curl(library), options(std::move(post_options)), multi(curl.multi_init()) {
        curl.multi_setopt(multi, CURLMOPT_MAXCONNECTS, kIdleConnectionsMax);
    }
    ~State() {
        for (auto& [easy, transfer] : transfers) curl.multi_remove_handle(multi, easy);
        transfers.clear();
        curl.multi_cleanup(multi);
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    const CurlLibrary& curl;
    const PostOptions options;
    CURLM* const multi;
    std::map<CURL*, std::unique_ptr<Transfer>> transfers;
};

Result<std::unique_ptr<PostClient>> PostClient::make(PostOptions options) {
    TUNE_TRY(library, CurlLibrary::get());
    auto state = std::make_unique<State>(*library, std::move(options));
    if (state->multi == nullptr) return Error{Code::kInternalError, "libcurl could not start"};
    return std::unique_ptr<PostClient>(new PostClient(std::move(state)));
}

PostClient::PostClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
PostClient::~PostClient() = default;

void PostClient::start(PostRequest request, Done done) {
    auto transfer = std::make_unique<Transfer>(state_->curl);
    transfer->request = std::move(request);
    transfer->done = std::move(done);
    if (!transfer->prepare(state_->options) ||
        state_->curl.multi_add_handle(state_->multi, transfer->easy) != CURLM_OK) {
        PostResponse answer;
        answer.error = "libcurl refused the request to " + transfer->request.url;
        answer.is_refused = true;
        return transfer->done(std::move(answer));
    }
    CURL* const easy = transfer->easy;
    state_->transfers.emplace(easy, std::move(transfer));
}

std::size_t PostClient::in_flight() const {
    return state_->transfers.size();
}

void PostClient::poll(int timeout_ms) {
    const CurlLibrary& curl = state_->curl;
    int running = 0;
    curl.multi_perform(state_->multi, &running);
    int unused = 0;
    if (static_cast<std::size_t>(running) == state_->transfers.size())
        curl.multi_poll(state_->multi, nullptr, 0, timeout_ms, &unused);
    curl.multi_perform(state_->multi, &running);
    while (const CURLMsg* message = curl.multi_info_read(state_->multi, &unused)) {
        if (message->msg != CURLMSG_DONE) continue;
        CURL* const easy = message->easy_handle;
        const CURLcode code = message->data.result;
        curl.multi_remove_handle(state_->multi, easy);
        const std::unique_ptr<Transfer> transfer =
            std::move(state_->transfers.extract(easy).mapped());
        transfer->finish(code);
    }
}

void PostClient::wake() {
    state_->curl.multi_wakeup(state_->multi);
}

}  // namespace tune::tracker
