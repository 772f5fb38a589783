#include "tracker/api/app.h"

#include "tracker/api/artifacts/multipart_routes.h"
#include "tracker/api/ui/ui.h"

namespace tune::tracker {

void add_tracking_routes(Router& router, TrackingParts parts, const TrackingOptions& options) {
    router.set_prefix(options.static_prefix);
    add_server_routes(router);
    add_logging_routes(router, parts.store);
    add_experiment_routes(router, parts.store);
    add_run_routes(router, parts.store);
    add_metric_routes(router, parts.store);
    add_logged_model_routes(router, parts.store);
    add_registered_model_routes(router, parts.store);
    add_model_version_routes(router, parts);
    add_artifact_routes(router, parts);
    add_multipart_routes(router, parts, options.static_prefix);
    add_event_routes(router, parts);
    add_ui_routes(router, parts.store);
    add_web_routes(router, options);
}

}  // namespace tune::tracker
