// Bodies are read by range, each over a connection that is free for the next request when it ends:
// Arrow's file of Google's storage opens a stream of the whole object beside every range.

#include "loader/source/cloud/google_source.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text/percent.h"
#include "loader/source/http/http_range.h"

namespace tune::loader {
namespace {

std::string generation_header(const HttpResponse& response) {
    return response.header("x-goog-generation");
}

}  // namespace

GoogleSource::GoogleSource(CloudPlace place, std::string endpoint, const SourceOptions& options,
                           HttpLogin login)
    : place_(std::move(place)),
      endpoint_(std::move(endpoint)),
      client_(options, std::move(login)) {}

Result<std::shared_ptr<const GoogleSource>> GoogleSource::open(const std::string& url,
                                                               const SourceOptions& options) {
    TUNE_TRY(place, cloud_place(url));
    std::string endpoint =
        options.endpoint.empty() ? cloud_setting({"STORAGE_EMULATOR_HOST"}) : options.endpoint;
    if (endpoint.empty()) endpoint = "https://storage.googleapis.com";
    if (endpoint.find("://") == std::string::npos) endpoint = "http://" + endpoint;
    while (endpoint.ends_with('/')) endpoint.pop_back();
    TUNE_TRY(keeper, google_login(options));
    HttpLogin login;
    if (keeper)
        login = [keeper = std::move(keeper)](HttpRequest& request) -> Result<void> {
            TUNE_TRY(token, keeper->token());
            request.headers.push_back("Authorization: Bearer " + token);
            return {};
        };
    return std::shared_ptr<const GoogleSource>(
        new GoogleSource(std::move(place), std::move(endpoint), options, std::move(login)));
}

std::string GoogleSource::address(const std::string& key) const {
    return endpoint_ + "/storage/v1/b/" + percent_encode(place_.bucket, false) + "/o/" +
           percent_encode(key, false);
}

Result<ObjectInfo> GoogleSource::stat(std::string_view path) const {
    TUNE_TRY(key, key_of(place_, path));
    const std::string name = name_of(place_, path);
    if (key.empty())
        return Error{Code::kResourceDoesNotExist, "'" + name + "' is a bucket, not a file"};
    HttpResponse response;
    TUNE_TRY(text, send_for_text(client_, {.url = address(key), .name = name}, response));
    const Result<Json> json = parse_json(text);
    if (!json || !json->is_object() || !json->contains("size"))
        return data_loss("'" + name + "': the server's answer does not describe an object");
    return ObjectInfo{std::string(path), number_member(*json, "size"),
                      text_member(*json, "generation")};
}

Result<std::vector<ObjectInfo>> GoogleSource::list(std::string_view folder) const {
    return list_beneath(
        place_, folder,
        [this](const std::string& prefix, const FoundObject& found) { return find(prefix, found); },
        [this](std::string_view path) { return stat(path); });
}

Result<void> GoogleSource::find(const std::string& prefix, const FoundObject& found) const {
    std::string page;
    do {
        std::string where = endpoint_ + "/storage/v1/b/" + percent_encode(place_.bucket, false) +
                            "/o?prefix=" + percent_encode(prefix, false);
        if (!page.empty()) where += "&pageToken=" + percent_encode(page, false);
        HttpResponse response;
        TUNE_TRY(text, send_for_text(client_, {.url = where, .name = place_.shown}, response));
        const Result<Json> json = parse_json(text);
        if (!json || !json->is_object())
            return data_loss("'" + place_.shown + "' gave no list of files");
        for (const Json& item : json->value("items", Json::array()))
            found(text_member(item, "name"), number_member(item, "size"),
                  text_member(item, "generation"));
        page = text_member(*json, "nextPageToken");
    } while (!page.empty());
    return {};
}

Result<void> GoogleSource::read(const ObjectInfo& object, std::uint64_t offset,
                                std::span<std::byte> bytes) const {
    TUNE_TRY(key, key_of(place_, object.path));
    HttpRequest request{.url = address(key) + "?alt=media", .name = name_of(place_, object.path)};
    // As it is stored: an object with gzip's encoding is not unpacked on the way.
    request.headers.push_back("Accept-Encoding: gzip");
    if (!object.version.empty()) request.url += "&ifGenerationMatch=" + object.version;
    return read_range(client_, std::move(request), {object, offset, &generation_header}, bytes);
}

Result<void> GoogleSource::write(std::string_view path, std::span<const std::byte> bytes) const {
    TUNE_TRY(key, key_of(place_, path));
    HttpRequest request{.url = endpoint_ + "/upload/storage/v1/b/" +
                               percent_encode(place_.bucket, false) +
                               "/o?uploadType=media&name=" + percent_encode(key, false),
                        .name = name_of(place_, path),
                        .headers = {"Content-Type: application/octet-stream"},
                        .method = "POST",
                        .sent = bytes};
    HttpResponse response;
    TUNE_TRY_VOID(send_for_text(client_, std::move(request), response));
    return {};
}

}  // namespace tune::loader
