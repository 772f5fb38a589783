#pragma once
// Where other machines reach this one.

#include <string>

namespace tune::worker {

/// The address of this machine on the way to the server, e.g. "10.0.0.7": whoever reaches the
/// server most likely reaches it. Empty where the server's name does not lead anywhere. Sends
/// nothing; may wait for a name server.
[[nodiscard]] std::string address_towards(const std::string& server_url);

/// The network interface of this machine that has the address, e.g. "eth0" for "10.0.0.7"; empty:
/// none has it, or it is no address but a name.
[[nodiscard]] std::string interface_of(const std::string& address);

}  // namespace tune::worker
