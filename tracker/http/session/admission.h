#pragma once
// What becomes of a request, decided by its head before any byte of its body is read.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tracker/api/http/http_types.h"
#include "tracker/api/http/router.h"
#include "tracker/http/session/session_events.h"
#include "tracker/http/worker.h"

namespace tune::tracker {

struct Admission {
    /// May be known although the request is refused.
    const Route* route = nullptr;
    /// Takes the body piece by piece; without it the body is collected.
    std::unique_ptr<BodySink> sink;
    /// The response in place of the route's.
    std::optional<Response> refusal;
};

/// Removes the server's path prefix from `request`, then checks its host, route, client's
/// certificate, content coding and length. `endpoints`: those of the connection.
[[nodiscard]] Admission admit(Request& request, std::optional<std::uint64_t> content_length,
                              const Endpoints& endpoints, const ServerContext& context);

/// Opens the sink of a route that streams its body, or says why it cannot be. REQUIRES: it was
/// admitted, and it is known who asks (Router::needs_proof).
void open_sink(Admission& admission, const std::shared_ptr<Request>& request);

}  // namespace tune::tracker
