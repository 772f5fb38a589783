#include "tracker/api/artifacts/file_responses.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "base/text/time_text.h"
#include "tracker/api/http/url.h"
#include "tracker/artifacts/artifact_path.h"

namespace tune::tracker {
namespace {

using TypeRow = std::pair<std::string_view, std::string_view>;

/// mlflow/utils/mime_type_utils.py of 3.17.2, and what the web page shows.
constexpr std::array kTextExtensions = {
    std::string_view("txt"),  std::string_view("log"),     std::string_view("err"),
    std::string_view("cfg"),  std::string_view("conf"),    std::string_view("cnf"),
    std::string_view("cf"),   std::string_view("ini"),     std::string_view("properties"),
    std::string_view("prop"), std::string_view("hocon"),   std::string_view("toml"),
    std::string_view("yaml"), std::string_view("yml"),     std::string_view("xml"),
    std::string_view("json"), std::string_view("js"),      std::string_view("py"),
    std::string_view("py3"),  std::string_view("csv"),     std::string_view("tsv"),
    std::string_view("md"),   std::string_view("rst"),     std::string_view("ipynb"),
    std::string_view("sh"),   std::string_view("mlmodel"), std::string_view("mlproject")};

constexpr std::array kTypes = {
    TypeRow{"png", "image/png"},       TypeRow{"jpg", "image/jpeg"},
    TypeRow{"jpeg", "image/jpeg"},     TypeRow{"gif", "image/gif"},
    TypeRow{"webp", "image/webp"},     TypeRow{"bmp", "image/bmp"},
    TypeRow{"svg", "image/svg+xml"},   TypeRow{"html", "text/html"},
    TypeRow{"htm", "text/html"},       TypeRow{"css", "text/css"},
    TypeRow{"pdf", "application/pdf"}, TypeRow{"zip", "application/zip"},
    TypeRow{"gz", "application/gzip"}, TypeRow{"tar", "application/x-tar"},
    TypeRow{"mp4", "video/mp4"},       TypeRow{"mp3", "audio/mpeg"},
    TypeRow{"wav", "audio/x-wav"}};

}  // namespace

std::string_view artifact_content_type(std::string_view file_name) {
    const std::size_t dot = file_name.rfind('.');
    std::string extension(dot == std::string_view::npos ? file_name : file_name.substr(dot + 1));
    for (char& c : extension)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (std::find(kTextExtensions.begin(), kTextExtensions.end(), extension) !=
        kTextExtensions.end())
        return "text/plain";
    const auto row = std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeRow& candidate) {
        return candidate.first == extension;
    });
    return row == kTypes.end() ? "application/octet-stream" : row->second;
}

Response file_response(OpenArtifact opened, std::string_view path) {
    Response response;
    const std::string_view name = artifact_name(path);
    response.content_type = artifact_content_type(name);
    response.etag = std::move(opened.etag);
    response.headers.emplace_back("Content-Disposition", attachment_disposition(name));
    response.headers.emplace_back("Last-Modified", http_date(opened.modified_s * 1000));
    response.headers.emplace_back("Content-Security-Policy", "sandbox; default-src 'none'");
    response.special = FileBody{std::move(opened.file), opened.size_bytes};
    return response;
}

}  // namespace tune::tracker
