#include "loader/source/hdfs/failed_nodes.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include "base/text/percent.h"
#include "base/text/uri.h"

namespace tune::loader {
namespace {

constexpr std::chrono::seconds kCountsFor(60);

}  // namespace

std::vector<std::string> host_names(std::string_view url) {
    const UriParts parts = split_uri(url);
    const std::string host(split_authority(parts.authority).host);
    std::vector<std::string> names = {host};
    addrinfo wanted{};
    wanted.ai_family = AF_INET;  // what HDFS keeps
    wanted.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(host.c_str(), nullptr, &wanted, &found) != 0) return names;
    for (const addrinfo* each = found; each; each = each->ai_next) {
        char text[INET_ADDRSTRLEN] = {};
        const auto* const address = reinterpret_cast<const sockaddr_in*>(each->ai_addr);
        if (::inet_ntop(AF_INET, &address->sin_addr, text, sizeof text)) names.emplace_back(text);
    }
    ::freeaddrinfo(found);
    return names;
}

void FailedNodes::add(const std::vector<std::string>& names) {
    const auto until = std::chrono::steady_clock::now() + kCountsFor;
    const std::lock_guard lock(mutex_);
    for (const std::string& name : names) until_[name] = until;
}

std::string FailedNodes::parameter() {
    const auto now = std::chrono::steady_clock::now();
    std::string text;
    const std::lock_guard lock(mutex_);
    std::erase_if(until_, [now](const auto& node) { return node.second <= now; });
    for (const auto& [name, until] : until_)
        text += (text.empty() ? "&excludedatanodes=" : ",") + percent_encode(name, false);
    return text;
}

void FailedNodes::clear() {
    const std::lock_guard lock(mutex_);
    until_.clear();
}

}  // namespace tune::loader
