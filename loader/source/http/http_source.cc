// Range requests of one URL's folder, with If-Match where the object's version is known: half of
// one file and half of its successor would be a wrong sample. A server without ranges is refused by
// name, since each sample would fetch the whole file.

#include "loader/source/http/http_source.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text/percent.h"
#include "loader/source/http/http_range.h"

namespace tune::loader {
namespace {

/// ETag, else the time of change.
std::string version_header(const HttpResponse& response) {
    const std::string etag = response.header("etag");
    return etag.empty() ? response.header("last-modified") : etag;
}

bool is_strong(const std::string& version) {
    return version.starts_with('"');
}

}  // namespace

HttpSource::HttpSource(HttpPlace place, const SourceOptions& options)
    : place_(std::move(place)), client_(options) {}

std::string HttpSource::address(std::string_view path) const {
    std::string text = place_.base;
    if (!path.empty()) text += "/" + percent_encode(path);
    return text + place_.query;
}

Result<ObjectInfo> HttpSource::stat(std::string_view path) const {
    if (!is_object_path(path))
        return invalid_parameter("the path '" + std::string(path) + "' leads out of '" +
                                 place_.url + "'");
    ObjectInfo object{std::string(path), 0, ""};
    const std::string where = address(path);
    bool asks_by_range = false;  // of servers that know no HEAD
    TUNE_TRY_VOID(with_retries(client_.options(), [&]() -> std::optional<AttemptFailure> {
        HttpRequest request{.url = where, .is_head = !asks_by_range, .headers = place_.headers};
        if (asks_by_range) {
            request.headers.push_back("Range: bytes=0-0");
            request.accept = [](const HttpResponse& response) { return response.status == 206; };
        }
        HttpResponse response;
        std::optional<AttemptFailure> failure = client_.send(request, response);
        const bool is_empty = asks_by_range && response.status == 416;
        if (failure && !asks_by_range &&
            (response.status == 403 || response.status == 405 || response.status == 501)) {
            asks_by_range = true;  // presigned addresses are good for one verb
            return AttemptFailure{std::move(failure->error), true, 0.001};
        }
        if (failure && !is_empty) return failure;
        object.version = version_header(response);
        object.bytes = response.status == 206 ? content_range(response).total
                       : is_empty             ? 0
                                              : leading_number(response.header("content-length"));
        if (response.status != 206 && !is_empty && response.header("content-length").empty())
            return AttemptFailure{
                {Code::kNotImplemented, "'" + public_url(where) + "' does not say how long it is"}};
        return {};
    }));
    return object;
}

Result<void> HttpSource::read(const ObjectInfo& object, std::uint64_t offset,
                              std::span<std::byte> bytes) const {
    HttpRequest request{.url = address(object.path), .headers = place_.headers};
    if (is_strong(object.version)) request.headers.push_back("If-Match: " + object.version);
    return read_range(client_, std::move(request), {object, offset, &version_header}, bytes);
}

Result<std::string> HttpSource::get_text(const std::string& where, HttpResponse& response) const {
    return send_for_text(client_, {.url = where, .headers = place_.headers}, response);
}

Result<std::vector<ObjectInfo>> HttpSource::list(std::string_view folder) const {
    if (!is_object_path(folder))
        return invalid_parameter("the path '" + std::string(folder) + "' leads out of '" +
                                 place_.url + "'");
    Result<std::vector<ObjectInfo>> objects = Error{
        Code::kNotImplemented, "a web server does not list its files: '" + place_.url +
                                   "' must hold an index.json, or be the address of one file"};
    if (place_.listing == HttpPlace::Listing::kHuggingFace) objects = list_hugging_face(folder);
    if (place_.listing == HttpPlace::Listing::kUnityCatalog) objects = list_unity_catalog(folder);
    if (objects) std::ranges::sort(*objects, {}, &ObjectInfo::path);
    return objects;
}

/// GET /api/datasets/NAME/tree/REVISION/FOLDER?recursive=true; the next page is a Link header.
Result<std::vector<ObjectInfo>> HttpSource::list_hugging_face(std::string_view folder) const {
    const std::size_t slash = place_.list_base.find('?');
    const std::string prefix = place_.list_base.substr(slash + 1);  // of the source's own folder
    std::string next = place_.list_base.substr(0, slash);
    for (const std::string_view part : {std::string_view(prefix), folder})
        if (!part.empty()) next += "/" + percent_encode(part);
    next += "?recursive=true";
    std::vector<ObjectInfo> objects;
    while (!next.empty()) {
        HttpResponse response;
        TUNE_TRY(text, get_text(next, response));
        const Result<Json> json = parse_json(text);
        if (!json || !json->is_array())
            return data_loss("'" + public_url(next) + "' gave no list of files");
        for (const Json& entry : *json) {
            if (entry.value("type", "") != "file") continue;
            std::string path = entry.value("path", "");
            if (!prefix.empty() && path.starts_with(prefix + "/")) path.erase(0, prefix.size() + 1);
            objects.push_back(
                {path, entry.value("size", std::uint64_t{0}), entry.value("oid", "")});
        }
        const std::string link = response.header("link");  // <URL>; rel="next"
        const std::size_t end = link.find(">; rel=\"next\"");
        next = end == std::string::npos ? "" : link.substr(1, end - 1);
    }
    return objects;
}

/// GET /api/2.0/fs/directories/PATH, a folder and a page at a time.
Result<std::vector<ObjectInfo>> HttpSource::list_unity_catalog(std::string_view folder) const {
    std::vector<ObjectInfo> objects;
    std::vector<std::string> folders = {std::string(folder)};
    while (!folders.empty()) {
        const std::string current = std::move(folders.back());
        folders.pop_back();
        std::string token;
        do {
            std::string where = place_.list_base;
            if (!current.empty()) where += "/" + percent_encode(current);
            if (!token.empty()) where += "?page_token=" + percent_encode(token, false);
            HttpResponse response;
            TUNE_TRY(text, get_text(where, response));
            const Result<Json> json = parse_json(text);
            if (!json || !json->is_object())
                return data_loss("'" + public_url(where) + "' gave no list of files");
            for (const Json& entry : json->value("contents", Json::array())) {
                const std::string path =
                    (current.empty() ? "" : current + "/") + entry.value("name", "");
                if (entry.value("is_directory", false))
                    folders.push_back(path);
                else
                    objects.push_back(
                        {path, entry.value("file_size", std::uint64_t{0}),
                         std::to_string(entry.value("last_modified", std::int64_t{0}))});
            }
            token = json->value("next_page_token", "");
        } while (!token.empty());
    }
    return objects;
}

}  // namespace tune::loader
