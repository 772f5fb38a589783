// What libtune_http_source.so exports.

#include "loader/source/cloud/azure_source.h"
#include "loader/source/cloud/google_source.h"
#include "loader/source/hdfs/webhdfs_source.h"
#include "loader/source/http/http_source.h"
#include "loader/source/mapped_file.h"
#include "loader/source/source_library.h"

namespace tune::loader {
namespace {

bool is_google(const std::string& scheme) {
    return scheme == "gs" || scheme == "gcs";
}

bool is_hdfs(const std::string& scheme) {
    return scheme.ends_with("hdfs");
}

/// Of Google's storage, HDFS, or else Azure's.
Result<std::shared_ptr<const WritableSource>> open_cloud(const std::string& url,
                                                         const SourceOptions& options) {
    const std::string scheme = url_scheme(url);
    if (is_google(scheme)) {
        TUNE_TRY(google, GoogleSource::open(url, options));
        return std::shared_ptr<const WritableSource>(std::move(google));
    }
    if (is_hdfs(scheme)) {
        TUNE_TRY(hdfs, WebHdfsSource::open(url, options));
        return std::shared_ptr<const WritableSource>(std::move(hdfs));
    }
    TUNE_TRY(azure, AzureSource::open(url, options));
    return std::shared_ptr<const WritableSource>(std::move(azure));
}

SourceResult open_any(const std::string& url, const SourceOptions& options) {
    const std::string scheme = url_scheme(url);
    if (is_google(scheme) || is_hdfs(scheme) || scheme.starts_with("az") ||
        scheme.starts_with("abfs")) {
        TUNE_TRY(cloud, open_cloud(url, options));
        return std::shared_ptr<const ObjectSource>(std::move(cloud));
    }
    TUNE_TRY(place, http_place(url, options));
    return std::shared_ptr<const ObjectSource>(
        std::make_shared<HttpSource>(std::move(place), options));
}

class CloudSink final : public ObjectSink {
public:
    explicit CloudSink(std::shared_ptr<const WritableSource> source) : source_(std::move(source)) {}
    [[nodiscard]] Result<void> put(const std::filesystem::path& file,
                                   const std::string& name) const override {
        TUNE_TRY(mapped, MappedFile::open(file));
        return source_->write(name, mapped->bytes());
    }

private:
    const std::shared_ptr<const WritableSource> source_;
};

}  // namespace
}  // namespace tune::loader

extern "C" __attribute__((visibility("default"))) void tune_open_http_source(
    const std::string& url, const tune::loader::SourceOptions& options,
    tune::loader::SourceResult& result) {
    result = tune::loader::open_any(url, options);
}

extern "C" __attribute__((visibility("default"))) void tune_open_http_sink(
    const std::string& url, const tune::loader::SourceOptions& options,
    tune::loader::SinkResult& result) {
    auto cloud = tune::loader::open_cloud(url, options);
    if (!cloud) {
        result = std::move(cloud).error();
        return;
    }
    result = std::shared_ptr<const tune::loader::ObjectSink>(
        std::make_shared<tune::loader::CloudSink>(*std::move(cloud)));
}
