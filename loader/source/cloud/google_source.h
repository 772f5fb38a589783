#pragma once
// Google Cloud Storage by its JSON API.

#include <memory>
#include <string>

#include "loader/source/cloud/cloud_text.h"
#include "loader/source/cloud/cloud_token.h"
#include "loader/source/cloud/writable_source.h"
#include "loader/source/http/http_request.h"

namespace tune::loader {

/// gs://BUCKET/FOLDER, at options.endpoint, STORAGE_EMULATOR_HOST or Google's own address, as
/// google_login() says who asks. Versions are generations.
class GoogleSource final : public WritableSource {
public:
    [[nodiscard]] static Result<std::shared_ptr<const GoogleSource>> open(
        const std::string& url, const SourceOptions& options);

    [[nodiscard]] Result<ObjectInfo> stat(std::string_view path) const override;
    [[nodiscard]] Result<std::vector<ObjectInfo>> list(std::string_view folder) const override;
    [[nodiscard]] Result<void> read(const ObjectInfo& object, std::uint64_t offset,
                                    std::span<std::byte> bytes) const override;
    [[nodiscard]] Result<void> write(std::string_view path,
                                     std::span<const std::byte> bytes) const override;
    [[nodiscard]] const std::string& url() const override { return place_.shown; }

private:
    GoogleSource(CloudPlace place, std::string endpoint, const SourceOptions& options,
                 HttpLogin login);
    [[nodiscard]] std::string address(const std::string& key) const;
    [[nodiscard]] Result<void> find(const std::string& prefix, const FoundObject& found) const;

    const CloudPlace place_;
    const std::string endpoint_;
    mutable HttpClient client_;
};

}  // namespace tune::loader
