// The description is text that was compiled in (tracker/openapi); here its parts are joined and the
// common errors added. The page has a block of style and no script.

#include "tracker/api/ops/openapi.h"

#include <array>
#include <memory>

#include "base/error.h"
#include "base/version.h"

namespace tune::tracker {
namespace {

const OpenApiPart kTrackingOpenApi =
#include "openapi.inc"
    ;

struct CommonResponse {
    const char* status;
    const char* description;
};
/// What the error references of the descriptions point to.
constexpr std::array kCommonResponses = {
    CommonResponse{"400", "The request is wrong: the message says what and where"},
    CommonResponse{"401", "The call needs a token: see Authorization"},
    CommonResponse{"403", "Refused: a foreign Host or Origin, or something that must not be done"},
    CommonResponse{"404", "What the request names is not there"},
    CommonResponse{"409", "It is in another state than the request expects"},
    CommonResponse{"413", "The body is larger than its limit"},
    CommonResponse{"415", "The body's coding is not one that the server reads"},
    CommonResponse{"416", "The range lies outside of the file"},
    CommonResponse{"429", "Too many requests wait, or the disk is full: try again"},
    CommonResponse{"501", "This server cannot do it, and says what it is"},
    CommonResponse{"503", "Not now: try again"},
};

constexpr std::string_view kInfo =
    R"("info":{"title":"tune","summary":"Experiment tracking and hyperparameter tuning",)"
    R"("description":"MLflow's REST interface for training, and tune's own. Every path that )"
    R"(begins with /api/2.0/ or /api/3.0/ is served under /ajax-api/ too, with the same )"
    R"(operation; a path that is there only under /ajax-api/ is described as that. Names of )"
    R"(MLflow's fields may also be written in camelCase; fields that are not named here are )"
    R"(ignored. Bodies may be compressed (Content-Encoding: gzip).","version":")";

constexpr std::string_view kErrorSchema =
    R"("Error":{"type":"object","description":"Every error answer.","properties":{)"
    R"("error_code":{"type":"string"},"message":{"type":"string"},)"
    R"("sqlstate":{"type":"string"},"error_class":{"type":"string"}},)"
    R"("required":["error_code","message"],"additionalProperties":false})";

constexpr std::string_view kPageHead =
    R"(<!doctype html><html lang="en"><meta charset="utf-8"><title>tune: REST interface</title>
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<style>
:root{--text:#1c2430;--quiet:#5b6675;--line:#d9dee6;--back:#fff;--panel:#f5f7fa;--link:#0b57d0}
@media(prefers-color-scheme:dark){:root{--text:#e6e9ee;--quiet:#9aa4b2;--line:#333b47;
--back:#14181e;--panel:#1c222b;--link:#8ab4f8}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--text);background:var(--back);margin:0 auto;
max-width:1000px;padding:24px}
a{color:var(--link)}code{font:13px ui-monospace,monospace;overflow-wrap:anywhere}
h2{margin:32px 0 8px}h4{margin:12px 0 4px}p{margin:6px 0}
details{border:1px solid var(--line);border-radius:6px;margin:6px 0;padding:6px 12px}
details[open]{background:var(--panel)}summary{cursor:pointer}
.method{display:inline-block;min-width:58px;font-weight:600;font-size:12px}
.errors{color:var(--quiet)}
table{border-collapse:collapse;width:100%}
td{border-top:1px solid var(--line);padding:4px 8px 4px 0;vertical-align:top}
</style><h1>REST interface</h1>
<p>MLflow's routes for training and tune's own; <a href="openapi.json">openapi.json</a> is the same
for programs. What begins with <code>/api/2.0/</code> or <code>/api/3.0/</code> is served under
<code>/ajax-api/</code> too. <b>*</b> marks what must be there.</p>
)";

/// The page has one block of style and nothing that runs.
constexpr const char* kDocsPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'";

void append_joined(std::string& out, const std::vector<OpenApiPart>& parts,
                   std::string_view OpenApiPart::*member) {
    const char* comma = "";
    for (const OpenApiPart& part : parts) {
        if ((part.*member).empty()) continue;
        out += comma;
        out += part.*member;
        comma = ",";
    }
}

void append_common_responses(std::string& out) {
    const char* comma = "";
    for (const CommonResponse& answer : kCommonResponses) {
        out += comma;
        comma = ",";
        out +=
            "\"Error" + std::string(answer.status) + "\":{\"description\":\"" + answer.description +
            R"(","content":{"application/json":{"schema":{"$ref":"#/components/schemas/Error"}}}})";
    }
}

Response page_response(std::string text, const char* content_type) {
    Response response;
    response.content_type = content_type;
    response.headers.emplace_back("Cache-Control", "no-cache");
    response.body = std::move(text);
    return response;
}

}  // namespace

const OpenApiPart& tracking_openapi() {
    return kTrackingOpenApi;
}

std::string openapi_document(const std::vector<OpenApiPart>& parts) {
    std::string out = R"({"openapi":"3.1.0",)";
    out += kInfo;
    out += kVersion;
    out += R"("},"tags":[)";
    append_joined(out, parts, &OpenApiPart::tags);
    out += R"(],"paths":{)";
    append_joined(out, parts, &OpenApiPart::paths);
    out += R"(},"components":{"responses":{)";
    append_common_responses(out);
    out += R"(},"schemas":{)";
    out += kErrorSchema;
    out += ',';
    append_joined(out, parts, &OpenApiPart::schemas);
    out += "}}}";
    return out;
}

std::string openapi_page(const std::vector<OpenApiPart>& parts) {
    std::string out(kPageHead);
    for (const OpenApiPart& part : parts) out += part.operations_html;
    out += "<section><h2>Schemas</h2>\n";
    for (const OpenApiPart& part : parts) out += part.schemas_html;
    out += "</section></html>\n";
    return out;
}

void add_openapi_routes(Router& router, std::vector<OpenApiPart> parts) {
    router.add({Method::kGet, Access::kOpen, "/api/openapi.json", Body::kNone,
                "This interface, for programs",
                [parts](const std::shared_ptr<Request>&, const Responder& respond) {
                    respond(page_response(openapi_document(parts), "application/json"));
                }});
    router.add(
        {Method::kGet, Access::kOpen, "/api/docs", Body::kNone, "This interface, for people",
         [parts = std::move(parts)](const std::shared_ptr<Request>&, const Responder& respond) {
             Response page = page_response(openapi_page(parts), "text/html; charset=utf-8");
             page.headers.emplace_back("Content-Security-Policy", kDocsPolicy);
             respond(std::move(page));
         }});
}

}  // namespace tune::tracker
