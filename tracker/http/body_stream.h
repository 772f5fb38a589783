#pragma once
// A connection whose last answer is a body that is made while it is sent.

#include <memory>
#include <string>

#include "tracker/api/http/body_source.h"
#include "tracker/http/session/client_stream.h"
#include "tracker/http/session/connection_ticket.h"
#include "tracker/http/worker.h"

namespace tune::tracker {

struct StreamedResponse {
    std::shared_ptr<BodySource> source;
    std::string head;
    /// Chunked transfer coding; else the body ends with the connection.
    bool is_chunked = true;
};

/// Sends `answer` and closes. A piece is asked for when the last one is with the kernel, so a slow
/// client holds one piece; one that takes nothing for request_timeout_ms is cut off. Call it on the
/// worker's thread; takes over the connection with its ticket.
void serve_body_stream(ClientStream stream, std::shared_ptr<Worker> worker,
                       std::shared_ptr<ServerContext> context,
                       std::unique_ptr<ConnectionTicket> ticket, StreamedResponse answer);

}  // namespace tune::tracker
