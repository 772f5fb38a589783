#include "base/system/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <string>

#include "base/text/text.h"

namespace tune {
namespace {

constexpr unsigned char kLoopbackNet = 127;

}  // namespace

bool is_loopback(std::string_view host) {
    // A name may go on behind a byte at which C's functions end.
    if (host.find('\0') != std::string_view::npos) return false;
    const std::string text = lower_ascii(host);
    if (text == "localhost") return true;
    in_addr four{};
    if (::inet_pton(AF_INET, text.c_str(), &four) == 1)
        return (ntohl(four.s_addr) >> 24) == kLoopbackNet;
    in6_addr six{};
    if (::inet_pton(AF_INET6, text.c_str(), &six) != 1) return false;
    if (IN6_IS_ADDR_LOOPBACK(&six)) return true;
    return IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == kLoopbackNet;
}

}  // namespace tune
