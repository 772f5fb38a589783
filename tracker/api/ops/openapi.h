#pragma once
// /api/openapi.json and /api/docs: the description of every route, compiled into the program from
// the openapi/*.yaml beside the routes (tracker/openapi/description.h says how they are written).
// A test holds it against the route table.

#include <string>
#include <string_view>
#include <vector>

#include "tracker/api/http/router.h"

namespace tune::tracker {

/// The description of one library's routes: members of JSON lists and objects without their
/// brackets, and HTML. The bytes outlive the router.
struct OpenApiPart {
    std::string_view tags;
    std::string_view paths;
    std::string_view schemas;
    std::string_view operations_html;
    std::string_view schemas_html;
};

/// MLflow's routes and those of add_tracking_routes().
[[nodiscard]] const OpenApiPart& tracking_openapi();

/// The parts as one OpenAPI 3.1 document. Cost: a copy of about 200 kB.
[[nodiscard]] std::string openapi_document(const std::vector<OpenApiPart>& parts);

/// The same for people: one HTML page without other files or scripts.
[[nodiscard]] std::string openapi_page(const std::vector<OpenApiPart>& parts);

/// Adds GET /api/openapi.json and GET /api/docs. Both are put together for each request: nothing is
/// kept in memory for routes that few call.
void add_openapi_routes(Router& router, std::vector<OpenApiPart> parts);

}  // namespace tune::tracker
