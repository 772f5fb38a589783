// Blobs by Azure's REST API: stat by HEAD, ranges by GET with If-Match, lists by pages, uploads in
// blocks that appear as a whole when they are committed. Time-outs, attempts and reasons are those
// of our HttpClient; Azure's library has attempts of its own beneath, and no time-out to set.

#include "loader/source/cloud/azure_source.h"

#include <algorithm>
#include <charconv>

#include "base/text/percent.h"
#include "loader/source/http/http_range.h"

namespace tune::loader {
namespace {

std::string etag_header(const HttpResponse& response) {
    return response.header("etag");
}

std::uint64_t xml_number(std::string_view xml, const std::string& name) {
    const std::string text = xml_text(xml, name);
    std::uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

}  // namespace

AzureSource::AzureSource(AzurePlace azure, const SourceOptions& options)
    : place_(std::move(azure.place)),
      container_(azure.account.endpoint + "/" + percent_encode(place_.bucket, false)),
      client_(options, azure_requests(azure.account, options)) {}

Result<std::shared_ptr<const AzureSource>> AzureSource::open(const std::string& url,
                                                             const SourceOptions& options) {
    TUNE_TRY(azure, azure_place(url, options));
    return std::shared_ptr<const AzureSource>(new AzureSource(std::move(azure), options));
}

std::string AzureSource::address(const std::string& key) const {
    return container_ + "/" + percent_encode(key);
}

Result<ObjectInfo> AzureSource::stat(std::string_view path) const {
    TUNE_TRY(key, key_of(place_, path));
    const std::string name = name_of(place_, path);
    if (key.empty())
        return Error{Code::kResourceDoesNotExist, "'" + name + "' is a container, not a file"};
    HttpResponse response;
    TUNE_TRY_VOID(
        send_for_text(client_, {.url = address(key), .name = name, .is_head = true}, response));
    if (response.header("x-ms-meta-hdi_isfolder") == "true")
        return Error{Code::kResourceDoesNotExist, "'" + name + "' is a folder"};
    ObjectInfo object{std::string(path), 0, etag_header(response)};
    const std::string length = response.header("content-length");
    std::from_chars(length.data(), length.data() + length.size(), object.bytes);
    return object;
}

Result<std::vector<ObjectInfo>> AzureSource::list(std::string_view folder) const {
    return list_beneath(
        place_, folder,
        [this](const std::string& prefix, const FoundObject& found) { return find(prefix, found); },
        [this](std::string_view path) { return stat(path); });
}

Result<void> AzureSource::find(const std::string& prefix, const FoundObject& found) const {
    std::string page;
    do {
        std::string where = container_ + "?restype=container&comp=list&include=metadata";
        if (!prefix.empty()) where += "&prefix=" + percent_encode(prefix, false);
        if (!page.empty()) where += "&marker=" + percent_encode(page, false);
        HttpResponse response;
        TUNE_TRY(text, send_for_text(client_, {.url = where, .name = place_.shown}, response));
        if (text.find("<EnumerationResults") == std::string::npos)
            return data_loss("'" + place_.shown + "' gave no list of files");
        for (std::size_t at = text.find("<Blob>"); at != std::string::npos;) {
            const std::size_t end = std::min(text.find("</Blob>", at), text.size());
            const std::string_view blob = std::string_view(text).substr(at, end - at);
            std::string etag = xml_text(blob, "Etag");
            if (!etag.empty() && !etag.starts_with('"')) etag = '"' + etag + '"';
            const bool is_folder = xml_text(blob, "ResourceType") == "directory" ||
                                   xml_text(blob, "hdi_isfolder") == "true";
            if (!is_folder)
                found(xml_text(blob, "Name"), xml_number(blob, "Content-Length"), std::move(etag));
            at = text.find("<Blob>", end);
        }
        page = xml_text(text, "NextMarker");
    } while (!page.empty());
    return {};
}

Result<void> AzureSource::read(const ObjectInfo& object, std::uint64_t offset,
                               std::span<std::byte> bytes) const {
    TUNE_TRY(key, key_of(place_, object.path));
    HttpRequest request{.url = address(key), .name = name_of(place_, object.path)};
    if (object.version.starts_with('"')) request.headers.push_back("If-Match: " + object.version);
    return read_range(client_, std::move(request), {object, offset, &etag_header}, bytes);
}

Result<void> AzureSource::write(std::string_view path, std::span<const std::byte> bytes) const {
    TUNE_TRY(key, key_of(place_, path));
    HttpRequest request{
        .url = address(key),
        .name = name_of(place_, path),
        .headers = {"Content-Type: application/octet-stream", "x-ms-blob-type: BlockBlob"},
        .method = "PUT",
        .sent = bytes};
    HttpResponse response;
    TUNE_TRY_VOID(send_for_text(client_, std::move(request), response));
    return {};
}

}  // namespace tune::loader
