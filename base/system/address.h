#pragma once
// Addresses of machines.

#include <string_view>

namespace tune {

/// Whether only this machine answers at `host`: an address of 127.0.0.0/8, ::1, one of the former
/// within IPv6 (::ffff:127.0.0.1), or "localhost", the one name that is reserved for that (RFC
/// 6761). Any other name is not, however it begins: "127.example.org" leads wherever its owner
/// likes. IPv6 addresses stand without brackets. Asks no name server.
[[nodiscard]] bool is_loopback(std::string_view host);

}  // namespace tune
