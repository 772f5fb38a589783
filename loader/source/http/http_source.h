#pragma once
// Files of web servers, of Hugging Face and of Unity Catalog volumes.

#include <memory>
#include <string>

#include "loader/source/http/http_request.h"
#include "loader/source/object_source.h"

namespace tune::loader {

/// Where a source's files lie and how it is asked for a list.
struct HttpPlace {
    /// As the user wrote it.
    std::string url = {};
    /// Before the path of a file; `query` after it.
    std::string base = {};
    std::string query = {};
    std::vector<std::string> headers = {};
    /// The address that lists a folder; empty: it cannot be listed.
    std::string list_base = {};
    enum class Listing { kNone, kHuggingFace, kUnityCatalog } listing = Listing::kNone;
};

/// The place of an http(s), hf or dbfs URL. Tokens come from options.token, else from where the
/// services' own tools look: HF_TOKEN, HUGGING_FACE_HUB_TOKEN or the file that `hf auth login`
/// writes; DATABRICKS_HOST and DATABRICKS_TOKEN or ~/.databrickscfg (DATABRICKS_CONFIG_PROFILE).
/// Errors: kInvalidParameterValue for a URL that lacks something.
[[nodiscard]] Result<HttpPlace> http_place(const std::string& url, const SourceOptions& options);

class HttpSource final : public ObjectSource {
public:
    HttpSource(HttpPlace place, const SourceOptions& options);

    [[nodiscard]] Result<ObjectInfo> stat(std::string_view path) const override;
    [[nodiscard]] Result<std::vector<ObjectInfo>> list(std::string_view folder) const override;
    /// kNotImplemented from a server that sends whole files only, unless the whole one is asked
    /// for.
    [[nodiscard]] Result<void> read(const ObjectInfo& object, std::uint64_t offset,
                                    std::span<std::byte> bytes) const override;
    [[nodiscard]] const std::string& url() const override { return place_.url; }

private:
    [[nodiscard]] std::string address(std::string_view path) const;
    [[nodiscard]] Result<std::string> get_text(const std::string& address,
                                               HttpResponse& response) const;
    [[nodiscard]] Result<std::vector<ObjectInfo>> list_hugging_face(std::string_view folder) const;
    [[nodiscard]] Result<std::vector<ObjectInfo>> list_unity_catalog(std::string_view folder) const;

    const HttpPlace place_;
    mutable HttpClient client_;
};

}  // namespace tune::loader
