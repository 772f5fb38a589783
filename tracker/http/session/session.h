#pragma once
// One HTTP connection: reads a request, lets its route answer, writes the answer, again.

#include <boost/asio/ip/tcp.hpp>
#include <memory>

#include "tracker/http/worker.h"

namespace tune::tracker {

/// Serves the connection on `worker` until it closes. Call it on the worker's thread; the caller
/// has counted the connection in `context`. With `overloaded` its only answer is 429.
void serve_connection(boost::asio::ip::tcp::socket socket, std::shared_ptr<Worker> worker,
                      std::shared_ptr<ServerContext> context, bool overloaded);

}  // namespace tune::tracker
