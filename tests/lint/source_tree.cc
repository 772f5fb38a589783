#include "tests/lint/source_tree.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace tune::lint {
namespace {

namespace fs = std::filesystem;

bool is_ours(const fs::path& relative) {
    const std::string top = relative.begin()->string();
    if (top.starts_with(".") || top == "build") return false;
    return std::none_of(relative.begin(), relative.end(), [](const fs::path& part) {
        return part == "node_modules" || part == "dist" || part == "__pycache__";
    });
}

}  // namespace

std::vector<SourceFile> read_sources(const std::vector<std::string>& extensions) {
    const fs::path root = TUNE_SOURCE_DIR;
    std::vector<SourceFile> files;
    for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator();
         ++it) {
        const fs::path relative = fs::relative(it->path(), root);
        if (!is_ours(relative)) {
            if (it->is_directory()) it.disable_recursion_pending();
            continue;
        }
        if (!it->is_regular_file()) continue;
        if (std::find(extensions.begin(), extensions.end(), relative.extension().string()) ==
            extensions.end())
            continue;
        SourceFile file{relative.generic_string(), {}};
        std::ifstream stream(it->path());
        for (std::string line; std::getline(stream, line);) file.lines.push_back(line);
        files.push_back(std::move(file));
    }
    std::sort(files.begin(), files.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    return files;
}

}  // namespace tune::lint
