#pragma once
// Azure's blobs by their REST API, which serves folders of Data Lake Storage as well.

#include <memory>
#include <string>

#include "loader/source/cloud/azure_account.h"
#include "loader/source/cloud/writable_source.h"
#include "loader/source/http/http_request.h"

namespace tune::loader {

/// What azure_place() says of a URL. Versions are ETags.
class AzureSource final : public WritableSource {
public:
    [[nodiscard]] static Result<std::shared_ptr<const AzureSource>> open(
        const std::string& url, const SourceOptions& options);

    [[nodiscard]] Result<ObjectInfo> stat(std::string_view path) const override;
    [[nodiscard]] Result<std::vector<ObjectInfo>> list(std::string_view folder) const override;
    [[nodiscard]] Result<void> read(const ObjectInfo& object, std::uint64_t offset,
                                    std::span<std::byte> bytes) const override;
    [[nodiscard]] Result<void> write(std::string_view path,
                                     std::span<const std::byte> bytes) const override;
    [[nodiscard]] const std::string& url() const override { return place_.shown; }

private:
    AzureSource(AzurePlace azure, const SourceOptions& options);
    [[nodiscard]] std::string address(const std::string& key) const;
    [[nodiscard]] Result<void> find(const std::string& prefix, const FoundObject& found) const;

    const CloudPlace place_;
    const std::string container_;  // its address
    mutable HttpClient client_;
};

}  // namespace tune::loader
