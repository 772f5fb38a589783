#pragma once
// From a URL to the source behind it.

#include <memory>
#include <string>
#include <string_view>

#include "loader/source/object_source.h"
#include "loader/source/stop_signal.h"

namespace tune::loader {

struct SourceOptions {
    /// Attempts after the first one that failed for a reason which may pass (time-outs, cut
    /// connections, 408, 429, 5xx). The pause before each is random and at most doubles each time;
    /// a server's Retry-After is kept to.
    int download_retry = 5;
    /// A request on which nothing arrives for this long has failed.
    double download_timeout_s = 60;
    /// In place of the cloud's own address, e.g. "http://127.0.0.1:9000" for a MinIO.
    std::string endpoint = {};
    std::string region = {};
    /// The bearer token of http(s), hf and dbfs URLs, in place of what the environment holds.
    std::string token = {};
    /// Ends pauses between attempts, and with them the calls that wait.
    std::shared_ptr<StopSignal> stop = {};
};

/// What `url` names:
///   a path, file://...                  the machine's own files
/// The URL may name a folder or one file, which is then read under the path "". Nothing is fetched
/// yet where that can be avoided. Errors: kInvalidParameterValue for a URL of no known kind.
[[nodiscard]] Result<std::shared_ptr<const ObjectSource>> open_source(
    std::string_view url, const SourceOptions& options = {});

/// Whether `url` names files of this machine: a path, or file://.
[[nodiscard]] bool is_local_url(std::string_view url);

/// The path that a local URL names. REQUIRES: is_local_url(url).
[[nodiscard]] std::filesystem::path local_path(std::string_view url);

}  // namespace tune::loader
