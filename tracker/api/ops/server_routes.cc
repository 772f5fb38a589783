// What clients and probes ask about the server itself.

#include <nlohmann/json.hpp>

#include "base/version.h"
#include "tracker/api/app.h"

namespace tune::tracker {
namespace {

Handler fixed_response(Response response) {
    return [response = std::move(response)](const std::shared_ptr<Request>&,
                                            const Responder& respond) { respond(response); };
}

Json server_info() {
    return {{"store_type", "SqlStore"},
            {"workspaces_enabled", false},
            {"trace_archival_enabled", false},
            {"multipart_uploads_enabled", true},
            {"multipart_downloads_enabled", false},
            {"presigned_upload_run_id_supported", true},
            {"presigned_upload_model_id_supported", true},
            {"features_enabled", {{"gateway", false}}},
            {"tune_version", kVersion}};
}

}  // namespace

void add_server_routes(Router& router) {
    router.add({Method::kGet, Access::kOpen, "/health", Body::kNone, "OK when the server answers",
                fixed_response(text_response("OK"))});
    router.add({Method::kGet, Access::kOpen, "/version", Body::kNone,
                "The MLflow release that this server follows",
                fixed_response(text_response(kMlflowVersion))});
    router.add_api(3, {Method::kGet, Access::kOpen, "/mlflow/server-info", Body::kNone,
                       "What the server supports", fixed_response(json_response(server_info()))});
}

}  // namespace tune::tracker
