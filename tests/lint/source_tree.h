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

}  // namespace tune::lint
