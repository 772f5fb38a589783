// The head is read only once it is there whole, and anew with each piece of a body: both are small.
// Without substr() and what uses it, whose exception would bring the C++ library into the
// supervisor.

#include "worker/agent/supervisor/rendezvous_request.h"

#include <algorithm>

namespace tune::worker {
namespace {

constexpr int kBadRequest = 400;
constexpr int kForbidden = 403;
constexpr int kMethodNotAllowed = 405;
constexpr int kLengthRequired = 411;
constexpr int kTooLarge = 413;
constexpr int kHeadTooLarge = 431;

RendezvousRequest refused(int status) {
    return {.is_whole = true, .refusal = status};
}

std::string_view first_of(std::string_view text, std::size_t count) {
    return {text.data(), std::min(text.size(), count)};
}

/// Takes `prefix` off; false: it does not begin with it.
bool take_prefix(std::string_view& text, std::string_view prefix) {
    if (first_of(text, prefix.size()) != prefix) return false;
    text.remove_prefix(prefix.size());
    return true;
}

/// What stands before `separator`, which is taken off `text` with it; all of it without one.
std::string_view take_until(std::string_view& text, std::string_view separator) {
    const std::size_t at = text.find(separator);
    const std::string_view part = first_of(text, at);
    text.remove_prefix(at == std::string_view::npos ? text.size() : at + separator.size());
    return part;
}

bool is_header(std::string_view name, std::string_view lower_case) {
    if (name.size() != lower_case.size()) return false;
    for (std::size_t i = 0; i < name.size(); ++i) {
        const char c = name[i];
        if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c) != lower_case[i])
            return false;
    }
    return true;
}

/// The number; kRendezvousValueMax + 1 if it is larger, and -1 if it is none.
long read_length(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    if (text.empty()) return -1;
    long length = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') return -1;
        length = length * 10 + (c - '0');
        if (length > static_cast<long>(kRendezvousValueMax)) length = kRendezvousValueMax + 1;
    }
    return length;
}

/// 0, or the status by which the request is refused.
int read_first_line(std::string_view line, std::string_view prefix, RendezvousRequest& request) {
    const std::string_view method = take_until(line, " ");
    std::string_view path = take_until(line, " ");
    if (!take_prefix(line, "HTTP/1.")) return kBadRequest;
    if (method == "PUT")
        request.method = RendezvousMethod::kPut;
    else if (method == "DELETE")
        request.method = RendezvousMethod::kDelete;
    else if (method != "GET")
        return kMethodNotAllowed;
    if (!take_prefix(path, prefix)) return kForbidden;
    request.scope = take_until(path, "/");
    request.key = path;
    const bool is_pair =
        !request.scope.empty() && !path.empty() && path.find('/') == std::string_view::npos;
    return is_pair ? 0 : kBadRequest;
}

}  // namespace

RendezvousRequest read_rendezvous_request(std::string_view text, std::string_view prefix) {
    const std::size_t head_end = first_of(text, kRendezvousHeadMax).find("\r\n\r\n");
    if (head_end == std::string_view::npos)
        return text.size() < kRendezvousHeadMax ? RendezvousRequest() : refused(kHeadTooLarge);
    std::string_view head = first_of(text, head_end);
    RendezvousRequest request;
    if (const int status = read_first_line(take_until(head, "\r\n"), prefix, request); status != 0)
        return refused(status);
    long length = -1;
    while (!head.empty()) {
        std::string_view line = take_until(head, "\r\n");
        const std::string_view name = take_until(line, ":");
        if (is_header(name, "transfer-encoding")) return refused(kLengthRequired);
        if (!is_header(name, "content-length")) continue;
        length = read_length(line);
        if (length < 0) return refused(kBadRequest);
    }
    if (length < 0 && request.method == RendezvousMethod::kPut) return refused(kLengthRequired);
    if (length > static_cast<long>(kRendezvousValueMax)) return refused(kTooLarge);
    const std::size_t bytes = length > 0 ? static_cast<std::size_t>(length) : 0;
    std::string_view body = text;
    body.remove_prefix(head_end + 4);
    if (body.size() < bytes) return {};
    request.value = first_of(body, bytes);
    request.is_whole = true;
    return request;
}

}  // namespace tune::worker
