#pragma once
// A connection that has become a stream of server-sent events.

#include <memory>
#include <string>

#include "tracker/api/ui/event_hub.h"
#include "tracker/http/session/client_stream.h"
#include "tracker/http/session/connection_ticket.h"
#include "tracker/http/worker.h"

namespace tune::tracker {

/// Sends `head`, then the subscription's frames until either side closes. Call it on the worker's
/// thread; takes over the connection with its ticket.
void serve_event_stream(ClientStream stream, std::shared_ptr<Worker> worker,
                        std::shared_ptr<ServerContext> context,
                        std::unique_ptr<ConnectionTicket> ticket,
                        std::shared_ptr<EventSubscription> subscription, std::string head);

}  // namespace tune::tracker
