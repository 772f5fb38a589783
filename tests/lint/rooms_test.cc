// The shape of the tree as a test: how many sources a folder holds, and which files lie at the
// root. Both rules are functions of lists of paths, so that they are tried on made-up trees too.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/lint/source_tree.h"

namespace tune::lint {
namespace {

/// More than this and a newcomer searches instead of reading the names.
constexpr std::size_t kFolderSourcesMax = 25;

/// What counts as a source; build files, styles, data, documents and shell scripts do not.
const std::vector<std::string> kSourceExtensions = {".cc",  ".h",  ".ts", ".tsx",
                                                    ".mjs", ".py", ".sql"};

const std::set<std::string> kParts = {"base", "loader",  "tracker", "tuner",   "worker",
                                      "web",  "clients", "tests",   "examples"};

const std::set<std::string> kRootFiles = {
    ".clang-format", ".clang-tidy",    ".containerignore",  ".dockerignore",
    ".editorconfig", ".git",           ".gitattributes",    ".gitignore",
    "CHANGELOG.md",  "CMakeLists.txt", "CMakePresets.json", "CONTRIBUTING.md",
    "Containerfile", "LICENSE",        "README.md",         "THIRD_PARTY.md",
    "mkdocs.yml",    "pyproject.toml", "requirements.txt",  "setup.sh",
};

/// "FOLDER holds N sources" for each folder of the project's parts that has too many.
std::vector<std::string> crowded_folders(const std::vector<std::string>& paths) {
    std::map<std::string, std::size_t> counts;
    for (const std::string& path : paths) {
        const std::filesystem::path file(path);
        if (kParts.contains(file.begin()->string())) ++counts[file.parent_path().string()];
    }
    std::vector<std::string> crowded;
    for (const auto& [folder, count] : counts)
        if (count > kFolderSourcesMax)
            crowded.push_back(folder + " holds " + std::to_string(count) + " sources");
    return crowded;
}

std::vector<std::string> unexpected_at_root(const std::vector<std::string>& names) {
    std::vector<std::string> unexpected;
    std::copy_if(names.begin(), names.end(), std::back_inserter(unexpected),
                 [](const std::string& name) { return !kRootFiles.contains(name); });
    return unexpected;
}

TEST(Rooms, HoldFewSources) {
    const std::vector<std::string> paths = list_files(kSourceExtensions);
    ASSERT_GT(paths.size(), 500u) << "the test does not see the tree";
    for (const std::string& crowded : crowded_folders(paths))
        ADD_FAILURE() << crowded << ", and " << kFolderSourcesMax
                      << " is the most: move those of one subject into a folder of their own";
}

TEST(Rooms, OneSourceTooManyIsSeen) {
    std::vector<std::string> paths;
    for (std::size_t i = 0; i < kFolderSourcesMax; ++i)
        paths.push_back("tuner/study/" + std::to_string(i) + ".cc");
    paths.push_back("tuner/study/journal/journal.cc");  // a room of its own
    EXPECT_TRUE(crowded_folders(paths).empty());
    paths.push_back("tuner/study/one_more.h");
    EXPECT_EQ(crowded_folders(paths), std::vector<std::string>{"tuner/study holds 26 sources"});
}

TEST(Rooms, TheRootHoldsOnlyKnownFiles) {
    const std::vector<std::string> names = list_root_files();
    ASSERT_NE(std::find(names.begin(), names.end(), "CMakeLists.txt"), names.end())
        << "the test does not see the tree";
    for (const std::string& name : unexpected_at_root(names))
        ADD_FAILURE() << "the file '" << name
                      << "' does not belong at the root of the repository: if a test or a program "
                         "wrote it there, mend that and remove the file; if it is meant to stay, "
                         "put it into the folder of its subject or add its name to kRootFiles in "
                         "tests/lint/rooms_test.cc";
}

TEST(Rooms, AStrayFileAtTheRootIsSeen) {
    EXPECT_EQ(unexpected_at_root({"CMakeLists.txt", "again", "README.md"}),
              std::vector<std::string>{"again"});
}

}  // namespace
}  // namespace tune::lint
