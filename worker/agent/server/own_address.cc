#include "worker/agent/server/own_address.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <string_view>
#include <utility>

#include "base/system/unique_fd.h"
#include "base/text/uri.h"

namespace tune::worker {
namespace {

/// "https://host:port/..." -> {"host", "port"}; brackets of an IPv6 address are taken off.
std::pair<std::string, std::string> host_and_port(const std::string& url) {
    const UriParts uri = split_uri(url.find("://") == std::string::npos ? "http://" + url : url);
    const Authority authority = split_authority(uri.authority);
    const std::string_view usual = uri.scheme == "https" ? "443" : "80";
    return {std::string(authority.host), std::string(authority.has_port ? authority.port : usual)};
}

}  // namespace

std::string address_towards(const std::string& server_url) {
    const auto [host, port] = host_and_port(server_url);
    addrinfo hints = {};
    hints.ai_socktype = SOCK_DGRAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return {};
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
    for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
        const UniqueFd probe(socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        // Of a datagram socket this only chooses the way.
        if (!probe || connect(probe.get(), at->ai_addr, at->ai_addrlen) != 0) continue;
        sockaddr_storage own = {};
        socklen_t length = sizeof own;
        char text[NI_MAXHOST] = {};
        if (getsockname(probe.get(), reinterpret_cast<sockaddr*>(&own), &length) == 0 &&
            getnameinfo(reinterpret_cast<sockaddr*>(&own), length, text, sizeof text, nullptr, 0,
                        NI_NUMERICHOST) == 0)
            return text;
    }
    return {};
}

std::string interface_of(const std::string& address) {
    ifaddrs* found = nullptr;
    if (getifaddrs(&found) != 0) return {};
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(found, freeifaddrs);
    for (const ifaddrs* at = found; at != nullptr; at = at->ifa_next) {
        const int family = at->ifa_addr != nullptr ? at->ifa_addr->sa_family : AF_UNSPEC;
        if (family != AF_INET && family != AF_INET6) continue;
        const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
        char text[NI_MAXHOST] = {};
        if (getnameinfo(at->ifa_addr, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0 &&
            address == text)
            return at->ifa_name;
    }
    return {};
}

}  // namespace tune::worker
