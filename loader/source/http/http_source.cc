// Range requests, with If-Match where the object's version is known: a server then refuses to give
// bytes of another version (412), and one that ignores the condition shows by the answer's ETag.

#include "loader/source/http/http_source.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text/percent.h"
#include "loader/source/source_library.h"

namespace tune::loader {
namespace {

constexpr std::size_t kListingBytesMax = std::size_t{64} << 20;

std::uint64_t number_of(std::string_view text) {
    std::uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

std::string version_header(const HttpResponse& response) {
    const std::string etag = response.header("etag");
    return etag.empty() ? response.header("last-modified") : etag;
}

bool is_strong(const std::string& version) {
    return version.starts_with('"');
}

/// "bytes 5-9/100": the first one, and the whole (0: unknown).
struct ContentRange {
    std::uint64_t first = 0;
    std::uint64_t total = 0;
};

ContentRange content_range(const HttpResponse& response) {
    const std::string text = response.header("content-range");
    ContentRange range;
    if (!text.starts_with("bytes ")) return range;
    range.first = number_of(std::string_view(text).substr(6));
    const std::size_t slash = text.find('/');
    if (slash != std::string::npos)
        range.total = number_of(std::string_view(text).substr(slash + 1));
    return range;
}

/// The body of one range, as it comes.
struct RangeTarget {
    std::span<std::byte> bytes;
    std::size_t filled = 0;
    std::optional<Error> error = {};
};

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
                                              : number_of(response.header("content-length"));
        if (response.status != 206 && !is_empty && response.header("content-length").empty())
            return AttemptFailure{
                {Code::kNotImplemented, "'" + public_url(where) + "' does not say how long it is"}};
        return {};
    }));
    return object;
}

Result<void> HttpSource::read(const ObjectInfo& object, std::uint64_t offset,
                              std::span<std::byte> bytes) const {
    if (bytes.empty()) return {};
    const std::string where = address(object.path);
    const bool is_whole = offset == 0 && bytes.size() == object.bytes;
    HttpRequest request{.url = where, .headers = place_.headers};
    request.headers.push_back("Range: bytes=" + std::to_string(offset) + "-" +
                              std::to_string(offset + bytes.size() - 1));
    if (is_strong(object.version)) request.headers.push_back("If-Match: " + object.version);
    return with_retries(client_.options(), [&]() -> std::optional<AttemptFailure> {
        RangeTarget target{bytes};
        request.accept = [&](const HttpResponse& answer) {
            const std::string version = version_header(answer);
            if (answer.status == 200 && !is_whole)
                target.error = Error{Code::kNotImplemented, "'" + public_url(where) +
                                                                "' is sent whole only: its server "
                                                                "does not read ranges"};
            else if (answer.status == 206 && content_range(answer).first != offset)
                target.error = Error{Code::kDataLoss, "'" + public_url(where) +
                                                          "' returned another range than the "
                                                          "one that was asked for"};
            else if (!object.version.empty() && !version.empty() && version != object.version)
                target.error = Error{Code::kDataLoss,
                                     "'" + public_url(where) + "' was changed while it was read"};
            return !target.error;
        };
        request.body = [&](std::span<const std::byte> piece) {
            if (piece.size() > target.bytes.size() - target.filled) {
                target.error = Error{Code::kDataLoss, "'" + public_url(where) +
                                                          "' is longer than it was stated to be"};
                return false;
            }
            std::memcpy(target.bytes.data() + target.filled, piece.data(), piece.size());
            target.filled += piece.size();
            return true;
        };
        HttpResponse response;
        if (std::optional<AttemptFailure> failure = client_.send(request, response)) return failure;
        if (target.error) return AttemptFailure{*std::move(target.error)};
        if (target.filled == bytes.size()) return {};
        // The server itself says that this is all: the object is shorter.
        return AttemptFailure{{Code::kDataLoss, "'" + public_url(where) + "' ends at byte " +
                                                    std::to_string(offset + target.filled) + ", " +
                                                    std::to_string(bytes.size() - target.filled) +
                                                    " bytes too early"}};
    });
}

Result<std::string> HttpSource::get_text(const std::string& where, HttpResponse& response) const {
    std::string text;
    TUNE_TRY_VOID(with_retries(client_.options(), [&]() -> std::optional<AttemptFailure> {
        text.clear();
        HttpRequest request{.url = where, .headers = place_.headers};
        request.body = [&](std::span<const std::byte> piece) {
            text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
            return text.size() <= kListingBytesMax;
        };
        return client_.send(request, response);
    }));
    return text;
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

extern "C" __attribute__((visibility("default"))) void tune_open_http_source(
    const std::string& url, const tune::loader::SourceOptions& options,
    tune::loader::SourceResult& result) {
    tune::Result<tune::loader::HttpPlace> place = tune::loader::http_place(url, options);
    if (!place) {
        result = std::move(place).error();
        return;
    }
    result = std::shared_ptr<const tune::loader::ObjectSource>(
        std::make_shared<tune::loader::HttpSource>(*std::move(place), options));
}
