#pragma once
// The tracking application: every route of this library on one router.
//
//   Router router;
//   EventHub hub(clock);
//   LiveEvents live(hub, clock);         // tracker/api/ui/live_events.h
//   store->add_observer(&live);
//   add_tracking_routes(router, {*store, *artifacts, hub}, {.assets = assets});
//   auto server = Server::start(options, router);

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "tracker/api/http/router.h"
#include "tracker/api/ui/event_hub.h"
#include "tracker/artifacts/artifact_store.h"
#include "tracker/store/store.h"

namespace tune::tracker {

/// One file of the web page. The bytes outlive the router.
struct WebAsset {
    /// "/index.html", "/assets/app.js"
    std::string_view path;
    std::string_view bytes;
    /// The same, compressed; empty: none.
    std::string_view gzip_bytes;
    std::string_view content_type;
    /// Quoted.
    std::string_view etag;
    /// The path holds a hash of the content, so browsers may keep it for ever.
    bool is_immutable = false;
};

struct TrackingParts {
    Store& store;
    ArtifactStore& artifacts;
    EventHub& hub;
};

struct TrackingOptions {
    /// The web page; without "/index.html" page paths are 404.
    std::span<const WebAsset> assets = {};
    /// "/tracking": stands before every path (Router::set_prefix); empty: none.
    std::string static_prefix = {};
    /// Gives the Set-Cookie for a code that came with the address of a page ("?code="), or "";
    /// empty: such codes mean nothing.
    std::function<std::string(std::string_view code)> redeem_page_code = {};
    /// The page asks for a name and a password where it does not know who looks at it.
    bool users_log_in = false;
};

/// Adds MLflow's tracking and artifact routes (under /api and /ajax-api), /health, /version,
/// server-info, the live events, the reads of the page and the page itself. The parts outlive the
/// router's use. Source of all behaviour: MLflow 3.17.2.
void add_tracking_routes(Router& router, TrackingParts parts, const TrackingOptions& options);

// The groups of it, each in its own file.
void add_experiment_routes(Router& router, Store& store);
void add_run_routes(Router& router, Store& store);
void add_logging_routes(Router& router, Store& store);
void add_metric_routes(Router& router, Store& store);
void add_logged_model_routes(Router& router, Store& store);
void add_registered_model_routes(Router& router, Store& store);
void add_model_version_routes(Router& router, TrackingParts parts);
void add_artifact_routes(Router& router, TrackingParts parts);
void add_server_routes(Router& router);
void add_event_routes(Router& router, TrackingParts parts);
void add_web_routes(Router& router, const TrackingOptions& options);

}  // namespace tune::tracker
