#include "loader/source/open_source.h"

#include "base/text/percent.h"
#include "base/text/uri.h"
#include "loader/source/local_source.h"
#include "loader/source/source_library.h"

namespace tune::loader {
namespace {

/// A folder of Databricks that this machine has mounted, as its clusters do; empty: none.
std::filesystem::path mounted(std::string_view url) {
    std::string path(url.substr(std::string_view("dbfs:").size()));
    while (path.starts_with("//")) path.erase(0, 1);
    std::error_code ignored;
    const std::filesystem::path place = path.starts_with("/Volumes/") ? path : "/dbfs" + path;
    return std::filesystem::exists(place, ignored) ? place : std::filesystem::path();
}

}  // namespace

std::string url_scheme(std::string_view url) {
    const std::size_t colon = url.find(':');
    if (colon == std::string_view::npos || !is_uri_scheme(url.substr(0, colon))) return {};
    // Of "C:x" and "a:b.csv" nobody means a URL; of "dbfs:/Volumes" everybody does.
    return url.substr(colon + 1, 1) == "/" ? split_uri(url).scheme : std::string();
}

bool is_local_url(std::string_view url) {
    const std::string scheme = url_scheme(url);
    return scheme.empty() || scheme == "file";
}

std::filesystem::path local_path(std::string_view url) {
    if (url_scheme(url).empty()) return std::filesystem::path(url);
    // file:/a, file:///a and file://host/a, of which only this host's files can be read anyway.
    return percent_decode(split_uri(url).path);
}

Result<std::shared_ptr<const ObjectSource>> open_source(std::string_view url,
                                                        const SourceOptions& options) {
    if (options.download_retry < 0 || !(options.download_timeout_s > 0))
        return invalid_parameter(
            "download_retry must not be negative and download_timeout must be positive");
    if (url.empty()) return invalid_parameter("the URL of the data is empty");
    if (is_local_url(url))
        return std::shared_ptr<const ObjectSource>(std::make_shared<LocalSource>(local_path(url)));
    const std::string scheme = url_scheme(url);
    if (scheme == "dbfs" && options.endpoint.empty())
        if (const std::filesystem::path place = mounted(url); !place.empty())
            return std::shared_ptr<const ObjectSource>(std::make_shared<LocalSource>(place));
    TUNE_TRY(kind, url_kind(scheme, url));
    TUNE_TRY(function, library_function(kind.library, kind.source));
    SourceResult result = Error{};
    reinterpret_cast<OpenSourceFunction*>(function)(scheme + std::string(url.substr(scheme.size())),
                                                    options, result);
    return result;
}

}  // namespace tune::loader
