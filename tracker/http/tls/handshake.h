#pragma once
// A new connection of a server with TLS, until it is known who speaks and how.

#include <boost/asio/ip/tcp.hpp>
#include <memory>

#include "tracker/http/session/connection_ticket.h"
#include "tracker/http/worker.h"

namespace tune::tracker {

/// Has the handshake done on the threads for it, then serves the connection on `worker`. A client
/// that speaks plain HTTP is answered 400; one that is not done within handshake_timeout_ms, or
/// comes while its address has handshakes_per_client_max under way, is cut off. Call it on the
/// worker's thread. REQUIRES: context->options.tls.
void shake_hands(boost::asio::ip::tcp::socket socket, std::shared_ptr<Worker> worker,
                 std::shared_ptr<ServerContext> context, std::unique_ptr<ConnectionTicket> ticket);

}  // namespace tune::tracker
