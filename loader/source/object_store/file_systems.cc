// Most stores speak S3: R2, B2, OCI and CoreWeave are S3 at an address of their own, and Google's
// with an HMAC key. Retries are ours (retry.h), for one rule and one wording: the SDK's strategy
// only notes what it thinks of an error.

#include "loader/source/object_store/file_systems.h"

#include <arrow/filesystem/s3fs.h>
#include <arrow/io/interfaces.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace tune::loader {
namespace {

namespace fs = arrow::fs;

constexpr int kStoreConnections = 96;

thread_local bool s3_failure_may_pass = false;

class NoRetries final : public fs::S3RetryStrategy {
public:
    bool ShouldRetry(const AWSErrorDetail& error, int64_t /*attempts*/) override {
        s3_failure_may_pass = error.should_retry;
        return false;
    }
    int64_t CalculateDelayBeforeNextRetry(const AWSErrorDetail& /*error*/,
                                          int64_t /*attempts*/) override {
        return 0;
    }
};

std::string setting(std::initializer_list<const char*> names) {
    for (const char* const name : names)
        if (const char* const value = std::getenv(name); value && *value) return value;
    return {};
}

Error store_error(const std::string& url, const arrow::Status& status) {
    const Code code = status.IsNotImplemented() ? Code::kNotImplemented
                      : status.IsInvalid()      ? Code::kInvalidParameterValue
                                                : Code::kTemporarilyUnavailable;
    return {code, "'" + url + "' cannot be opened: " + status.message()};
}

/// "BUCKET/FOLDER" of "scheme://BUCKET/FOLDER?query": the rest of the URL as it stands, because
/// keys may hold any character.
std::string rest_of(const std::string& url) {
    std::string rest = url.substr(url.find("://") + 3);
    while (rest.ends_with('/')) rest.pop_back();
    return rest;
}

/// "https" and "host:9000" of "https://host:9000/"; an empty scheme where none is given.
std::pair<std::string, std::string> scheme_and_host(const std::string& endpoint) {
    const std::size_t colon = endpoint.find("://");
    const bool has_scheme = colon != std::string::npos;
    std::string host = has_scheme ? endpoint.substr(colon + 3) : endpoint;
    while (host.ends_with('/')) host.pop_back();
    return {has_scheme ? endpoint.substr(0, colon) : "", host};
}

/// Has the SDK ended when the process exits. Called when its first client was made: handlers run in
/// the reverse order, so this one comes before the destructors of everything that it uses.
void end_s3_at_exit() {
    static const int registered = std::atexit([] { (void)fs::EnsureS3Finalized(); });
    static_cast<void>(registered);
}

/// What S3 needs to know that differs from store to store.
struct S3Place {
    std::string bucket_path = {};
    std::string endpoint = {};
    std::string region = {};
    std::string access_key = {};
    std::string secret_key = {};
    bool is_virtual_hosted = false;
};

/// Whether the SDK's chain has something to find without asking the machine's metadata service.
bool has_aws_credentials() {
    if (!setting({"AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
                  "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                  "AWS_SHARED_CREDENTIALS_FILE"})
             .empty())
        return true;
    std::error_code ignored;
    const std::filesystem::path folder = setting({"HOME"}) + "/.aws";
    return std::filesystem::exists(folder / "credentials", ignored) ||
           std::filesystem::exists(folder / "config", ignored);
}

Result<StorePlace> open_s3(const std::string& url, S3Place place, const SourceOptions& options) {
    // In a Python process pyarrow may have started it, and ends it by itself.
    const bool is_ours = !fs::IsS3Initialized();
    if (const arrow::Status started = fs::EnsureS3Initialized(); !started.ok())
        return store_error(url, started);
    fs::S3Options s3;
    if (!place.access_key.empty()) {
        s3.ConfigureAccessKey(place.access_key, place.secret_key);
    } else {
        s3.ConfigureDefaultCredentials();
        // Public buckets are read without a signature, as boto3's users do by UNSIGNED.
        if (!has_aws_credentials() && s3.GetAccessKey().empty()) s3.ConfigureAnonymousCredentials();
    }
    if (!place.endpoint.empty()) {
        const auto [scheme, host] = scheme_and_host(place.endpoint);
        if (!scheme.empty()) s3.scheme = scheme;
        s3.endpoint_override = host;
    }
    s3.force_virtual_addressing = place.is_virtual_hosted;
    s3.region = place.region;
    if (s3.region.empty() && place.endpoint.empty()) {
        const auto region =
            fs::ResolveS3BucketRegion(place.bucket_path.substr(0, place.bucket_path.find('/')));
        if (region.ok()) s3.region = *region;
    }
    if (s3.region.empty()) s3.region = "us-east-1";
    // The SDK keeps as many connections as Arrow's pool has threads; the requests are ours.
    static const bool is_wide = arrow::io::SetIOThreadPoolCapacity(kStoreConnections).ok();
    static_cast<void>(is_wide);
    s3.connect_timeout = options.download_timeout_s;
    s3.request_timeout = options.download_timeout_s;
    s3.retry_strategy = std::make_shared<NoRetries>();
    arrow::Result<std::shared_ptr<fs::S3FileSystem>> files = fs::S3FileSystem::Make(s3);
    if (is_ours) end_s3_at_exit();
    if (!files.ok()) return store_error(url, files.status());
    return StorePlace{*files, place.bucket_path, true};
}

Result<S3Place> s3_place(const std::string& scheme, const std::string& url,
                         const SourceOptions& options) {
    S3Place place{.bucket_path = rest_of(url)};
    place.endpoint = options.endpoint;
    place.region = options.region;
    const auto use = [&place](std::string endpoint, std::string region) {
        if (place.endpoint.empty()) place.endpoint = std::move(endpoint);
        if (place.region.empty()) place.region = std::move(region);
    };
    if (scheme == "r2") {
        const std::string account = setting({"R2_ACCOUNT_ID", "CLOUDFLARE_ACCOUNT_ID"});
        if (account.empty() && place.endpoint.empty())
            return invalid_parameter("'" + url + "' needs the account's number in R2_ACCOUNT_ID");
        use("https://" + account + ".r2.cloudflarestorage.com", "auto");
        place.access_key = setting({"R2_ACCESS_KEY_ID"});
        place.secret_key = setting({"R2_SECRET_ACCESS_KEY"});
    } else if (scheme == "b2") {
        const std::string region = setting({"B2_REGION"});
        if (region.empty() && place.endpoint.empty())
            return invalid_parameter("'" + url +
                                     "' needs the bucket's region in B2_REGION, e.g. us-west-004");
        use("https://s3." + region + ".backblazeb2.com", region);
        place.access_key = setting({"B2_APPLICATION_KEY_ID"});
        place.secret_key = setting({"B2_APPLICATION_KEY"});
    } else if (scheme == "oci") {
        // oci://BUCKET@NAMESPACE/FOLDER
        const std::size_t slash = place.bucket_path.find('/');
        const std::string authority = place.bucket_path.substr(0, slash);
        const std::size_t at = authority.find('@');
        const std::string region = setting({"OCI_REGION", "OCI_CLI_REGION"});
        if (place.endpoint.empty() && (at == std::string::npos || region.empty()))
            return invalid_parameter("'" + url +
                                     "' must be oci://BUCKET@NAMESPACE/FOLDER, with the region in "
                                     "OCI_REGION, e.g. eu-frankfurt-1");
        const std::string name_space = at == std::string::npos ? "" : authority.substr(at + 1);
        use("https://" + name_space + ".compat.objectstorage." + region + ".oraclecloud.com",
            region);
        place.bucket_path = authority.substr(0, at) +
                            (slash == std::string::npos ? "" : place.bucket_path.substr(slash));
        place.access_key = setting({"OCI_ACCESS_KEY_ID"});
        place.secret_key = setting({"OCI_SECRET_ACCESS_KEY"});
    } else if (scheme == "cw") {
        use(setting({"CW_ENDPOINT_URL"}), setting({"CW_REGION"}));
        use("https://cwobject.com", "us-east-1");
        // Only AI Object Storage itself wants the bucket in the host's name.
        place.is_virtual_hosted = place.endpoint.find("cwobject.com") != std::string::npos ||
                                  place.endpoint.find("cwlota.com") != std::string::npos;
        place.access_key = setting({"CW_ACCESS_KEY_ID"});
        place.secret_key = setting({"CW_SECRET_ACCESS_KEY"});
    } else {
        use(setting({"S3_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}),
            setting({"AWS_REGION", "AWS_DEFAULT_REGION"}));
    }
    if (place.bucket_path.empty()) return invalid_parameter("'" + url + "' names no bucket");
    return place;
}

/// Google's storage by its S3 address, with an HMAC key.
Result<StorePlace> open_gcs(const std::string& url, const SourceOptions& options) {
    S3Place place{.bucket_path = rest_of(url),
                  .access_key = setting({"GCS_KEY"}),
                  .secret_key = setting({"GCS_SECRET"})};
    place.endpoint = options.endpoint.empty() ? "https://storage.googleapis.com" : options.endpoint;
    place.region = options.region.empty() ? "auto" : options.region;
    return open_s3(url, std::move(place), options);
}

}  // namespace

bool last_s3_failure_may_pass() {
    return s3_failure_may_pass;
}

Result<StorePlace> open_store(const std::string& url, const SourceOptions& options) {
    const std::string scheme = url.substr(0, url.find(':'));
    if (scheme == "gs" || scheme == "gcs") return open_gcs(url, options);
    if (scheme == "hdfs") {
        std::string path;
        const auto files = fs::FileSystemFromUri(url, &path);
        if (!files.ok()) return store_error(url, files.status());
        return StorePlace{*files, path};
    }
    TUNE_TRY(place, s3_place(scheme, url, options));
    return open_s3(url, std::move(place), options);
}

}  // namespace tune::loader
