#pragma once
// A folder, or one file, of this machine (or of a mounted file system) as a source.

#include <filesystem>

#include "loader/source/object_source.h"

namespace tune::loader {

/// Opens a file for each call; its version is size, time of change and number of the file, so that
/// one which was replaced between stat() and read() is noticed. Symbolic links to files are
/// followed, those to folders are not (they could go round in circles).
class LocalSource final : public ObjectSource {
public:
    explicit LocalSource(std::filesystem::path root);

    [[nodiscard]] Result<ObjectInfo> stat(std::string_view path) const override;
    [[nodiscard]] Result<std::vector<ObjectInfo>> list(std::string_view folder) const override;
    [[nodiscard]] Result<void> read(const ObjectInfo& object, std::uint64_t offset,
                                    std::span<std::byte> bytes) const override;
    [[nodiscard]] const std::string& url() const override { return url_; }
    [[nodiscard]] std::optional<std::filesystem::path> local_folder() const override {
        return root_;
    }

private:
    [[nodiscard]] Result<std::filesystem::path> place(std::string_view path) const;

    const std::filesystem::path root_;
    const std::string url_;
};

}  // namespace tune::loader
