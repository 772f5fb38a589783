#pragma once
// What the routes of artifacts share.

#include <memory>
#include <string_view>
#include <utility>

#include "tracker/api/http/http_types.h"
#include "tracker/api/ui/event_hub.h"
#include "tracker/artifacts/artifact_store.h"

namespace tune::tracker {

/// Runs `work` on the artifact pool and answers with what it gives.
template <class Work>
[[nodiscard]] Handler pool_handler(ArtifactStore& artifacts, Work work) {
    return [&artifacts, work](const std::shared_ptr<Request>& request, const Responder& respond) {
        artifacts.pool().post([work, request, respond] {
            Result<Response> response = work(*request);
            respond(response ? std::move(response).value() : error_response(response.error()));
        });
    };
}

/// Tells the page of a run that a file has come: "3/0f..a1/artifacts/plots/roc.png" -> the page of
/// run 0f..a1 hears of plots/roc.png. Thread-safe.
void announce_artifact(EventHub& hub, std::string_view path);

}  // namespace tune::tracker
