// Against DNS rebinding and cross-site requests: a browser sends the name that the page was loaded
// from, so a Host that is not ours, or an Origin that is not the Host, is refused before any route
// sees it. Names are compared without regard to case, after ports and brackets are cut off.

#include "tracker/http/protocol/host_check.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "base/text/text.h"
#include "base/text/uri.h"

namespace tune::tracker {
namespace {

struct HostPort {
    std::string host;
    std::string port;
};

bool is_number(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Splits "name", "name:port", "[v6]", "[v6]:port"; nothing for any other shape.
std::optional<HostPort> split_host(std::string_view text) {
    const Authority parts = split_authority(text);
    if (parts.has_user || parts.flaw != Authority::Flaw::kNone) return std::nullopt;
    if (parts.has_port && !is_number(parts.port)) return std::nullopt;
    HostPort out{lower_ascii(parts.host), std::string(parts.port)};
    in6_addr address{};
    const bool is_host =
        parts.is_bracketed
            ? inet_pton(AF_INET6, out.host.c_str(), &address) == 1
            : !out.host.empty() && out.host.find_first_of("/?#\\ ") == std::string::npos;
    if (!is_host) return std::nullopt;
    return out;
}

bool is_private_v4(std::uint32_t address) {
    const auto in = [address](std::uint32_t network, int bits) {
        return (address >> (32 - bits)) == (network >> (32 - bits));
    };
    return in(0x7f000000, 8) || in(0x0a000000, 8) || in(0xac100000, 12) || in(0xc0a80000, 16) ||
           address == 0;
}

bool is_private_address(const std::string& host) {
    in_addr v4{};
    if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return is_private_v4(ntohl(v4.s_addr));
    in6_addr v6{};
    if (inet_pton(AF_INET6, host.c_str(), &v6) != 1) return false;
    if (IN6_IS_ADDR_LOOPBACK(&v6) || IN6_IS_ADDR_UNSPECIFIED(&v6)) return true;
    if (IN6_IS_ADDR_V4MAPPED(&v6)) {
        std::uint32_t inner = 0;
        std::copy_n(&v6.s6_addr[12], 4, reinterpret_cast<std::uint8_t*>(&inner));
        return is_private_v4(ntohl(inner));
    }
    return (v6.s6_addr[0] & 0xfe) == 0xfc;
}

bool matches_entry(const std::string& entry, const HostPort& host) {
    if (entry == "*") return true;
    if (entry.starts_with("*.")) return host.host.ends_with(std::string_view(entry).substr(1));
    if (entry == host.host) return true;
    return !host.port.empty() && entry == host.host + ":" + host.port;
}

std::string_view default_port(std::string_view scheme) {
    return scheme == "https" ? "443" : "80";
}

}  // namespace

HostCheck::HostCheck(std::string bound_host, std::vector<std::string> allowed_hosts,
                     std::vector<std::string> allowed_origins)
    : bound_host_(lower_ascii(bound_host)),
      allowed_hosts_(std::move(allowed_hosts)),
      allowed_origins_(std::move(allowed_origins)) {
    for (std::string& entry : allowed_hosts_) entry = lower_ascii(entry);
    for (std::string& entry : allowed_origins_) entry = lower_ascii(entry);
}

bool HostCheck::host_allowed(std::string_view host, std::string_view local_address) const {
    // The common ones first, without an allocation.
    if (host.starts_with("127.0.0.1:") && is_number(host.substr(10))) return true;
    if (host.starts_with("localhost:") && is_number(host.substr(10))) return true;
    const std::optional<HostPort> parts = split_host(host);
    if (!parts) return false;
    if (parts->host == "localhost" || parts->host == bound_host_ || parts->host == local_address)
        return true;
    if (is_private_address(parts->host)) return true;
    return std::any_of(allowed_hosts_.begin(), allowed_hosts_.end(),
                       [&](const std::string& entry) { return matches_entry(entry, *parts); });
}

bool HostCheck::origin_allowed(std::string_view origin, std::string_view fetch_site,
                               std::string_view host) const {
    const auto listed = [this](const std::string& text) {
        return std::any_of(allowed_origins_.begin(), allowed_origins_.end(),
                           [&](const std::string& entry) { return entry == "*" || entry == text; });
    };
    if (origin.empty()) return fetch_site != "cross-site" || listed("");
    const std::string text = lower_ascii(origin);
    if (listed(text)) return true;
    const std::size_t separator = text.find("://");
    if (separator == std::string::npos) return false;  // "null" and the like
    const std::string_view scheme = std::string_view(text).substr(0, separator);
    const std::optional<HostPort> from = split_host(std::string_view(text).substr(separator + 3));
    const std::optional<HostPort> to = split_host(host);
    if (!from || !to || from->host != to->host) return false;
    // Behind a proxy that ends TLS the port of the page may be the scheme's, so a missing one is
    // the default on both sides.
    const std::string_view from_port = from->port.empty() ? default_port(scheme) : from->port;
    const std::string_view to_port = to->port.empty() ? default_port(scheme) : to->port;
    return from_port == to_port;
}

std::optional<Response> HostCheck::objection(const Request& request,
                                             std::string_view local_address) const {
    const std::string& path = request.path;
    if (path == "/health" || path == "/version") return std::nullopt;
    const std::string_view host = request.header("Host");
    if (!host_allowed(host, local_address))
        return error_response(
            {Code::kPermissionDenied,
             "Invalid Host header - possible DNS rebinding attack detected. Use localhost or the "
             "server's address, or start the server with this host allowed."});
    if (changes_state(request.method) &&
        !origin_allowed(request.header("Origin"), request.header("Sec-Fetch-Site"), host))
        return error_response({Code::kPermissionDenied,
                               "Cross-origin request blocked: a page of another site may not "
                               "change anything here."});
    return std::nullopt;
}

bool changes_state(Method method) {
    return method != Method::kGet && method != Method::kHead && method != Method::kOptions;
}

}  // namespace tune::tracker
