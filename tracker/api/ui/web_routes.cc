// The web page: files that are embedded in the program, compressed when it was built.
//
// Paths of the application's pages all give index.html; a path that looks like a file and is none
// gives 404, so that a missing picture is no page. The policy lets only the page's own files run
// and nobody frame it. A login code in the address is exchanged for a cookie and redirected away,
// because addresses stay in histories.

#include <map>
#include <optional>

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

/// The page for a server whose paths begin with `prefix`, or where users log in: its files are
/// found there, and its scripts read both from meta elements.
Response adapted_page(const WebAsset& index, const TrackingOptions& options) {
    const std::string& prefix = options.static_prefix;
    const std::string auth =
        options.users_log_in ? "<meta name=\"tune-auth\" content=\"basic\" />" : "";
    std::string html(index.bytes);
    for (const char* attribute : {"href=\"/", "src=\"/"}) {
        const std::string name(attribute, std::char_traits<char>::length(attribute) - 1);
        for (std::size_t at = 0; (at = html.find(attribute, at)) != std::string::npos;) {
            html.insert(at + name.size(), prefix);
            at += name.size() + prefix.size();
        }
    }
    const std::size_t head = html.find("<head>");
    if (head != std::string::npos)
        html.insert(head + 6, "<meta name=\"tune-prefix\" content=\"" + prefix + "\" />" + auth);
    Response response;
    response.content_type = index.content_type;
    response.headers.emplace_back("Content-Security-Policy", kPagePolicy);
    response.headers.emplace_back("Cache-Control", "no-cache");
    response.body = std::move(html);
    return response;
}

/// To the same page without the code, which is used up: a reload or a bookmark needs none.
Response without_code(const Request& request, const std::string& cookie) {
    const bool is_local = request.raw_path.starts_with('/') && !request.raw_path.starts_with("//");
    Response response;
    response.status = 303;
    response.headers.emplace_back("Location", is_local ? request.raw_path : "/");
    response.headers.emplace_back("Cache-Control", "no-store");
    if (!cookie.empty()) response.headers.emplace_back("Set-Cookie", cookie);
    return response;
}

/// "/experiments/3" is a page of the application, "/favicon.png" would be a file.
bool is_page_path(std::string_view path) {
    return path.substr(path.rfind('/') + 1).find('.') == std::string_view::npos;
}

}  // namespace

void add_web_routes(Router& router, const TrackingOptions& options) {
    AssetsByPath by_path;
    for (const WebAsset& asset : options.assets) by_path.emplace(asset.path, asset);
    const auto index = by_path.find("/index.html");
    if (index == by_path.end()) return;
    std::optional<Response> adapted;
    if (!options.static_prefix.empty() || options.users_log_in)
        adapted = adapted_page(index->second, options);
    router.set_fallback([by_path = std::move(by_path), adapted = std::move(adapted),
                         redeem = options.redeem_page_code](const std::shared_ptr<Request>& request,
                                                            const Responder& respond) {
        const auto found = by_path.find(request->path);
        const bool is_page = is_page_path(request->path) || request->path == "/index.html";
        if (const auto code = request->query_value("code"); is_page && redeem && code)
            return respond(without_code(*request, redeem(*code)));
        if (is_page && adapted) return respond(*adapted);
        if (found != by_path.end()) return respond(asset_response(found->second, *request));
        if (is_page) return respond(asset_response(by_path.at("/index.html"), *request));
        respond(error_response(
            {Code::kEndpointNotFound, "There is no file " + request->path + " on this server."}));
    });
}

}  // namespace tune::tracker
