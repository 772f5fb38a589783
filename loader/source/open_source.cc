#include "loader/source/open_source.h"

#include "base/text/percent.h"
#include "base/text/uri.h"
#include "loader/source/local_source.h"

namespace tune::loader {
namespace {

/// The scheme in lower case; empty for a path.
std::string scheme_of(std::string_view url) {
    const std::size_t colon = url.find(':');
    if (colon == std::string_view::npos || !is_uri_scheme(url.substr(0, colon))) return {};
    // Of "C:x" and "a:b.csv" nobody means a URL; of "dbfs:/Volumes" everybody does.
    return url.substr(colon + 1, 1) == "/" ? split_uri(url).scheme : std::string();
}

}  // namespace

bool is_local_url(std::string_view url) {
    const std::string scheme = scheme_of(url);
    return scheme.empty() || scheme == "file";
}

std::filesystem::path local_path(std::string_view url) {
    if (scheme_of(url).empty()) return std::filesystem::path(url);
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
    return invalid_parameter("the URL '" + std::string(url) +
                             "' is of an unknown kind; known are " + "a path and file://");
}

}  // namespace tune::loader
