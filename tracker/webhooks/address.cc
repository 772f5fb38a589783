// An address is public unless a block of IANA's special-purpose registries holds it. Addresses that
// carry an IPv4 address within (mapped, 6to4, NAT64) are checked by that one, else they would be a
// way around the table.

#include "tracker/webhooks/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace tune::tracker {
namespace {

using Bytes6 = std::array<std::uint8_t, 16>;

struct Block4 {
    std::uint32_t network;
    int prefix_bits;
};

constexpr std::uint32_t v4(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
    return a << 24 | b << 16 | c << 8 | d;
}

/// IANA's special-purpose registry (RFC 6890 and later), and multicast. 192.0.0.0/24 is taken
/// whole: its two globally reachable addresses are anycast services of the local network.
constexpr Block4 kNotPublic4[] = {
    {v4(0, 0, 0, 0), 8},      {v4(10, 0, 0, 0), 8},     {v4(100, 64, 0, 0), 10},
    {v4(127, 0, 0, 0), 8},    {v4(169, 254, 0, 0), 16}, {v4(172, 16, 0, 0), 12},
    {v4(192, 0, 0, 0), 24},   {v4(192, 0, 2, 0), 24},   {v4(192, 88, 99, 0), 24},
    {v4(192, 168, 0, 0), 16}, {v4(198, 18, 0, 0), 15},  {v4(198, 51, 100, 0), 24},
    {v4(203, 0, 113, 0), 24}, {v4(224, 0, 0, 0), 4},    {v4(240, 0, 0, 0), 4},
};

struct Block6 {
    Bytes6 network;
    int prefix_bits;
};

/// Inside 2000::/3: protocol assignments with Teredo, documentation.
constexpr Block6 kNotPublic6[] = {
    {{0x20, 0x01, 0x00, 0x00}, 23},
    {{0x20, 0x01, 0x0d, 0xb8}, 32},
    {{0x3f, 0xff, 0x00, 0x00}, 20},
};

constexpr Bytes6 kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr Bytes6 k6to4 = {0x20, 0x02};
constexpr Bytes6 kNat64 = {0x00, 0x64, 0xff, 0x9b};
constexpr Bytes6 kGlobalUnicast = {0x20};

bool is_public4(std::uint32_t address) {
    return std::none_of(std::begin(kNotPublic4), std::end(kNotPublic4), [&](const Block4& block) {
        return (address ^ block.network) >> (32 - block.prefix_bits) == 0;
    });
}

bool has_prefix(const Bytes6& address, const Bytes6& network, int bits) {
    const auto whole = static_cast<std::size_t>(bits / 8);
    if (!std::equal(address.begin(), address.begin() + bits / 8, network.begin())) return false;
    if (bits % 8 == 0) return true;
    return (address[whole] ^ network[whole]) >> (8 - bits % 8) == 0;
}

std::uint32_t v4_at(const Bytes6& address, std::size_t at) {
    return v4(address[at], address[at + 1], address[at + 2], address[at + 3]);
}

bool is_public6(const Bytes6& address) {
    if (has_prefix(address, kMapped, 96) || has_prefix(address, kNat64, 96))
        return is_public4(v4_at(address, 12));
    if (has_prefix(address, k6to4, 16)) return is_public4(v4_at(address, 2));
    if (!has_prefix(address, kGlobalUnicast, 3)) return false;
    return std::none_of(std::begin(kNotPublic6), std::end(kNotPublic6), [&](const Block6& block) {
        return has_prefix(address, block.network, block.prefix_bits);
    });
}

}  // namespace

bool is_public_address(const sockaddr& address) {
    if (address.sa_family == AF_INET) {
        sockaddr_in four{};
        std::memcpy(&four, &address, sizeof four);
        return is_public4(ntohl(four.sin_addr.s_addr));
    }
    if (address.sa_family != AF_INET6) return false;
    sockaddr_in6 six{};
    std::memcpy(&six, &address, sizeof six);
    Bytes6 bytes{};
    std::memcpy(bytes.data(), six.sin6_addr.s6_addr, bytes.size());
    return is_public6(bytes);
}

bool is_public_address(std::string_view text) {
    const std::string copy(text);
    in_addr four{};
    if (inet_pton(AF_INET, copy.c_str(), &four) == 1) return is_public4(ntohl(four.s_addr));
    Bytes6 six{};
    return inet_pton(AF_INET6, copy.c_str(), six.data()) == 1 && is_public6(six);
}

std::string address_text(const sockaddr& address) {
    char text[INET6_ADDRSTRLEN] = {};
    if (address.sa_family == AF_INET) {
        sockaddr_in four{};
        std::memcpy(&four, &address, sizeof four);
        inet_ntop(AF_INET, &four.sin_addr, text, sizeof text);
    } else if (address.sa_family == AF_INET6) {
        sockaddr_in6 six{};
        std::memcpy(&six, &address, sizeof six);
        inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof text);
    }
    return text;
}

}  // namespace tune::tracker
