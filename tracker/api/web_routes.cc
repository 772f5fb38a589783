// The web page: files that are embedded in the program.

#include <map>

#include "tracker/api/app.h"

namespace tune::tracker {
namespace {

/// Nothing but the page's own files runs, and nobody else may frame it.
constexpr const char* kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'";

using AssetsByPath = std::map<std::string_view, WebAsset>;

bool asks_for_gzip(const Request& request) {
    const std::string_view accepted = request.header("Accept-Encoding");
    return accepted.find("gzip") != std::string_view::npos &&
           accepted.find("gzip;q=0") == std::string_view::npos;
}

Response asset_response(const WebAsset& asset, const Request& request) {
    Response response;
    response.content_type = asset.content_type;
    response.etag = asset.etag;
    response.headers.emplace_back("Content-Security-Policy", kPagePolicy);
    response.headers.emplace_back(
        "Cache-Control", asset.is_immutable ? "public, max-age=31536000, immutable" : "no-cache");
    response.headers.emplace_back("Vary", "Accept-Encoding");
    if (!asset.gzip_bytes.empty() && asks_for_gzip(request)) {
        response.headers.emplace_back("Content-Encoding", "gzip");
        response.special = StaticBody{asset.gzip_bytes};
    } else {
        response.special = StaticBody{asset.bytes};
    }
    return response;
}

/// "/experiments/3" is a page of the application, "/favicon.png" would be a file.
bool is_page_path(std::string_view path) {
    return path.substr(path.rfind('/') + 1).find('.') == std::string_view::npos;
}

}  // namespace

void add_web_routes(Router& router, std::span<const WebAsset> assets) {
    AssetsByPath by_path;
    for (const WebAsset& asset : assets) by_path.emplace(asset.path, asset);
    if (!by_path.contains("/index.html")) return;
    router.set_fallback([by_path = std::move(by_path)](const std::shared_ptr<Request>& request,
                                                       const Responder& respond) {
        const auto found = by_path.find(request->path);
        if (found != by_path.end()) return respond(asset_response(found->second, *request));
        if (is_page_path(request->path))
            return respond(asset_response(by_path.at("/index.html"), *request));
        respond(error_response(
            {Code::kEndpointNotFound, "There is no file " + request->path + " on this server."}));
    });
}

}  // namespace tune::tracker
