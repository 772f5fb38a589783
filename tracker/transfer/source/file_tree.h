#pragma once
// Small files under one folder that somebody else wrote: links are not followed, sizes are
// bounded.

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/system/unique_fd.h"

namespace tune::tracker {

/// One thread. Errors name the file: kDataLoss for what is too large or no file, else the system's
/// reason.
class FileTree {
public:
    [[nodiscard]] static Result<FileTree> open(const std::filesystem::path& root);

    /// Names of the folders in `folder`, sorted; empty when it is missing.
    [[nodiscard]] Result<std::vector<std::string>> folders_in(const std::string& folder);
    /// Paths of all files under `folder`, relative to it, sorted.
    [[nodiscard]] Result<std::vector<std::string>> files_in_tree(const std::string& folder);
    [[nodiscard]] bool has_file(const std::string& path) const;
    [[nodiscard]] Result<std::string> read(const std::string& path, std::size_t bytes_max) const;
    /// Calls `visit` with each line, without its end; lines may be at most `line_bytes_max` long.
    using VisitLine = std::function<Result<void>(std::string_view line, std::int64_t number)>;
    [[nodiscard]] Result<void> for_each_line(const std::string& path, std::size_t line_bytes_max,
                                             const VisitLine& visit) const;
    /// Changes when the file has.
    [[nodiscard]] std::string stamp(const std::string& path) const;
    /// A regular file.
    [[nodiscard]] Result<UniqueFd> open_file(const std::string& path) const;

    [[nodiscard]] const std::filesystem::path& root() const { return root_path_; }
    /// Links and special files met so far.
    [[nodiscard]] std::int64_t left_out_count() const { return left_out_count_; }

private:
    FileTree(UniqueFd root, std::filesystem::path path)
        : root_(std::move(root)), root_path_(std::move(path)) {}
    [[nodiscard]] Result<void> collect(const std::string& folder, const std::string& prefix,
                                       int depth, std::vector<std::string>& paths);

    UniqueFd root_;
    std::filesystem::path root_path_;
    std::int64_t left_out_count_ = 0;
};

}  // namespace tune::tracker
