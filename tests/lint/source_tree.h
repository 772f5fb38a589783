#pragma once

#include <string>
#include <vector>

namespace tune::lint {

struct SourceFile {
    std::string path;  // relative to the repository, with '/'
    std::vector<std::string> lines;
};

/// Every file of ours with one of `extensions`, sorted by path; build outputs and packages of
/// others are left out.
[[nodiscard]] std::vector<SourceFile> read_sources(const std::vector<std::string>& extensions);

/// The paths of those files alone.
[[nodiscard]] std::vector<std::string> list_files(const std::vector<std::string>& extensions);

/// Names of all files directly in the root of the repository, sorted; folders and links to folders
/// are left out.
[[nodiscard]] std::vector<std::string> list_root_files();

}  // namespace tune::lint
