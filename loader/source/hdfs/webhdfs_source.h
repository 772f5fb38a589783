#pragma once
// HDFS by WebHDFS, its REST API: neither a JVM nor Hadoop's libraries are needed.

#include <atomic>
#include <memory>
#include <string>

#include "base/json.h"
#include "loader/source/cloud/writable_source.h"
#include "loader/source/hdfs/failed_nodes.h"
#include "loader/source/hdfs/hdfs_place.h"
#include "loader/source/http/http_request.h"

namespace tune::loader {

/// What hdfs_place() says of a URL. A version is the file's number, its time of change and size.
class WebHdfsSource final : public WritableSource {
public:
    [[nodiscard]] static Result<std::shared_ptr<const WebHdfsSource>> open(
        const std::string& url, const SourceOptions& options);

    [[nodiscard]] Result<ObjectInfo> stat(std::string_view path) const override;
    [[nodiscard]] Result<std::vector<ObjectInfo>> list(std::string_view folder) const override;
    [[nodiscard]] Result<void> read(const ObjectInfo& object, std::uint64_t offset,
                                    std::span<std::byte> bytes) const override;
    [[nodiscard]] Result<void> write(std::string_view path,
                                     std::span<const std::byte> bytes) const override;
    [[nodiscard]] const std::string& url() const override { return place_.shown; }

private:
    /// What is done with a file: "/data/x", "op=OPEN&offset=0".
    struct Call {
        std::string path;
        std::string operation;
    };
    using Failure = std::optional<AttemptFailure>;

    WebHdfsSource(HdfsPlace place, const SourceOptions& options);
    [[nodiscard]] Result<std::string> file_path(std::string_view path) const;
    [[nodiscard]] std::string shown_path(std::string_view path) const;

    // One attempt each.
    [[nodiscard]] Failure ask(HttpRequest request, const Call& call, HttpResponse& response) const;
    [[nodiscard]] Failure ask_for_json(HttpRequest request, const Call& call, Json& answer) const;
    [[nodiscard]] Failure transfer(const HttpRequest& request, const Call& call) const;
    void leave_out(const std::string& node_url, const Call& call, const std::string& name) const;
    [[nodiscard]] Failure check_version(const ObjectInfo& object, const Call& call) const;

    // With retries.
    [[nodiscard]] Result<Json> json_of(const HttpRequest& request, const Call& call) const;
    /// Adds what lies in `folder` itself.
    [[nodiscard]] Result<void> list_folder(const std::string& folder,
                                           std::vector<ObjectInfo>& objects,
                                           std::vector<std::string>& folders) const;
    [[nodiscard]] Result<void> put_in_place(const std::string& part, const std::string& path,
                                            const std::string& name) const;

    const HdfsPlace place_;
    mutable HttpClient client_;
    mutable std::atomic<std::size_t> active_ = 0;  // of place_.name_nodes
    mutable FailedNodes failed_nodes_;
};

}  // namespace tune::loader
