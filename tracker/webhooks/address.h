#pragma once
// Which addresses a webhook may reach: those of the public internet. Everything else belongs to
// this machine or to networks that only this machine can reach (loopback, private, link-local with
// the metadata services of clouds, shared, documentation, multicast, reserved).

#include <sys/socket.h>

#include <string>
#include <string_view>

namespace tune::tracker {

/// IPv4-mapped (::ffff:a.b.c.d), 6to4 (2002::/16) and NAT64 (64:ff9b::/96) addresses are checked by
/// the IPv4 address in them. Stricter than MLflow 3.17.2 (Python's ipaddress.is_global) in two
/// things: multicast is not public, and neither is an IPv6 address outside of 2000::/3.
[[nodiscard]] bool is_public_address(const sockaddr& address);

/// As above, of an address as text ("127.0.0.1", "::1"); false when it is none.
[[nodiscard]] bool is_public_address(std::string_view text);

/// The address without its port; empty for other families than IPv4 and IPv6.
[[nodiscard]] std::string address_text(const sockaddr& address);

}  // namespace tune::tracker
