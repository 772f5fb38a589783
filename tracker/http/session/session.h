#pragma once
// One HTTP connection: reads a request, lets its route answer, writes the answer, again.

#include <boost/asio/ip/tcp.hpp>
#include <memory>

#include "tracker/http/session/connection_ticket.h"
#include "tracker/http/worker.h"

namespace tune::tracker {

/// Serves the connection on `worker` until it closes. Call it on the worker's thread. Where
/// `ticket` is beyond a limit its only answer is 429.
void serve_connection(boost::asio::ip::tcp::socket socket, std::shared_ptr<Worker> worker,
                      std::shared_ptr<ServerContext> context,
                      std::unique_ptr<ConnectionTicket> ticket);

}  // namespace tune::tracker
