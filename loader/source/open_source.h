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
    /// The bearer token of http(s), hf, dbfs, gs and az URLs, the delegation token of HDFS, in
    /// place of what the environment holds.
    std::string token = {};
    /// Ends pauses between attempts, and with them the calls that wait.
    std::shared_ptr<StopSignal> stop = {};
};

/// What `url` names:
///   a path, file://...                    the machine's own files
///   s3://BUCKET/FOLDER                    Amazon S3, or what AWS_ENDPOINT_URL or S3_ENDPOINT_URL
///   name r2:// b2:// cw:// oci://BUCKET@NAMESPACE/...   Cloudflare, Backblaze, CoreWeave, Oracle
///   gs://BUCKET/...   az://CONTAINER/...   abfs[s]://CONTAINER@ACCOUNT...
///   hdfs://HOST/...   webhdfs://HOST:PORT/...   swebhdfs://HOST:PORT/...
///   http(s)://...                         web servers; no lists of files
///   hf://datasets/OWNER/NAME[@REVISION]/...   Hugging Face
///   dbfs:/Volumes/...                     Unity Catalog volumes; under their mounts where there
///   are
/// Credentials are looked for where each cloud's own tools look; see docs/loader.md. The URL may
/// name a folder or one file, which is then read under the path "". Nothing is fetched yet where
/// that can be avoided. Errors: kInvalidParameterValue for a URL of no known kind.
[[nodiscard]] Result<std::shared_ptr<const ObjectSource>> open_source(
    std::string_view url, const SourceOptions& options = {});

/// The scheme in lower case; empty for a path.
[[nodiscard]] std::string url_scheme(std::string_view url);

/// Whether `url` names files of this machine: a path, or file://.
[[nodiscard]] bool is_local_url(std::string_view url);

/// The path that a local URL names. REQUIRES: is_local_url(url).
[[nodiscard]] std::filesystem::path local_path(std::string_view url);

}  // namespace tune::loader
