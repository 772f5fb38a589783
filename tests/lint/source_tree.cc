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

std::vector<std::string> list_files(const std::vector<std::string>& extensions) {
    const fs::path root = TUNE_SOURCE_DIR;
    std::vector<std::string> paths;
    for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator();
         ++it) {
        const fs::path relative = it->path().lexically_relative(root);
        if (!is_ours(relative)) {
            if (it->is_directory()) it.disable_recursion_pending();
            continue;
        }
        if (!it->is_regular_file()) continue;
        if (std::find(extensions.begin(), extensions.end(), relative.extension().string()) ==
            extensions.end())
            continue;
        paths.push_back(relative.generic_string());
    }
    std::sort(paths.begin(), paths.end());
    return paths;
}

std::vector<SourceFile> read_sources(const std::vector<std::string>& extensions) {
    std::vector<SourceFile> files;
    for (const std::string& path : list_files(extensions)) {
        SourceFile file{path, {}};
        std::ifstream stream(fs::path(TUNE_SOURCE_DIR) / path);
        for (std::string line; std::getline(stream, line);) file.lines.push_back(line);
        files.push_back(std::move(file));
    }
    return files;
}

std::vector<std::string> list_root_files() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(TUNE_SOURCE_DIR))
        if (!entry.is_directory()) names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

}  // namespace tune::lint
