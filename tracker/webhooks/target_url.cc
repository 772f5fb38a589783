// Checked when a webhook is made, changed or tested, for the sake of a good sentence: a name may
// point elsewhere by the time of a delivery. What protects the network is the check of the
// connected address (post_client.cc).

#include "tracker/webhooks/target_url.h"

#include <netdb.h>
#include <resolv.h>

#include <algorithm>
#include <memory>

#include "base/text/python_text.h"
#include "base/text/text.h"
#include "base/text/uri.h"
#include "tracker/webhooks/address.h"

namespace tune::tracker {
namespace {

/// A name server that does not answer is asked twice, for two seconds each.
void limit_lookups() {
    if (res_init() != 0) return;
    _res.retrans = 2;
    _res.retry = 2;
}

struct FreeAddresses {
    void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

}  // namespace

Result<std::string> target_host(const std::string& url, const TargetPolicy& policy) {
    const bool is_blank = std::all_of(url.begin(), url.end(),
                                      [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); });
    if (is_blank)
        return invalid_parameter("Webhook URL cannot be empty or just whitespace: " +
                                 python_repr(url));
    if (url.size() > kUrlBytesMax)
        return invalid_parameter("Webhook URL has " + std::to_string(url.size()) +
                                 " bytes; the limit is " + std::to_string(kUrlBytesMax) + ".");
    const std::size_t colon = url.find(':');
    const bool has_scheme =
        colon != std::string::npos && is_uri_scheme(std::string_view(url).substr(0, colon));
    const std::string scheme = has_scheme ? lower_ascii(url.substr(0, colon)) : "";
    if (scheme != "https" && !(scheme == "http" && policy.allow_http))
        return invalid_parameter("Invalid webhook URL scheme: " + python_repr(scheme) +
                                 ". Allowed schemes are: https" +
                                 (policy.allow_http ? ", http" : "") + ".");
    const bool has_odd = std::any_of(url.begin(), url.end(), [](char c) {
        return static_cast<unsigned char>(c) <= ' ' || c == '\x7f' || c == '\\';
    });
    if (has_odd)
        return invalid_parameter("Invalid webhook URL " + python_repr(url) +
                                 ": it holds a space, a backslash or a control character.");
    const Error no_host =
        invalid_parameter("Webhook URL must include a hostname: " + python_repr(url));
    if (url.compare(colon, 3, "://") != 0) return no_host;
    std::string_view authority = std::string_view(url).substr(colon + 3);
    authority = authority.substr(0, authority.find_first_of("/?#"));
    const Authority parts = split_authority(authority);
    if (parts.flaw == Authority::Flaw::kUnclosedBracket)
        return invalid_parameter("Invalid webhook URL " + python_repr(url) +
                                 ": ValueError('Invalid IPv6 URL')");
    // Of "a:b:80" the host is what stands before the first colon, as in Python's urlsplit.
    const std::string_view host =
        parts.is_bracketed ? parts.host : parts.host.substr(0, parts.host.find(':'));
    if (host.empty()) return no_host;
    return lower_ascii(host);
}

Result<void> check_target(const std::string& url, const TargetPolicy& policy) {
    TUNE_TRY(host, target_host(url, policy));
    if (policy.allow_private) return {};
    thread_local const bool is_limited = (limit_lookups(), true);
    static_cast<void>(is_limited);
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
    const std::unique_ptr<addrinfo, FreeAddresses> list(found);
    if (error != 0)
        return invalid_parameter("Cannot resolve Webhook URL hostname " + python_repr(host) +
                                 ": [Errno " + std::to_string(error) + "] " + gai_strerror(error));
    for (const addrinfo* one = list.get(); one != nullptr; one = one->ai_next)
        if (!is_public_address(*one->ai_addr))
            return invalid_parameter("Webhook URL must not resolve to a non-public IP address. " +
                                     python_repr(host) + " resolves to " +
                                     address_text(*one->ai_addr) + ".");
    return {};
}

}  // namespace tune::tracker
