#pragma once
// One HTTP connection: reads a request, lets its route answer, writes the answer, again.

#include <memory>
#include <optional>

#include "tracker/api/http/http_types.h"
#include "tracker/http/session/client_stream.h"
#include "tracker/http/session/connection_ticket.h"
#include "tracker/http/worker.h"

namespace tune::tracker {

/// Serves the connection on `worker` until it closes. Call it on the worker's thread. Where
/// `ticket` is beyond a limit its only answer is 429; where there is a `refusal`, that.
void serve_connection(ClientStream stream, std::shared_ptr<Worker> worker,
                      std::shared_ptr<ServerContext> context,
                      std::unique_ptr<ConnectionTicket> ticket,
                      std::optional<Response> refusal = {});

}  // namespace tune::tracker
