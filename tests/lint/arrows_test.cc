// The dependency direction of the project (README.md, "Map") as a test: who may include whom.

#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/lint/source_tree.h"

namespace tune::lint {
namespace {

/// Folder -> the folders (or single headers) it may include besides itself. A longer folder name
/// wins over its parent.
const std::map<std::string, std::set<std::string>> kArrows = {
    {"base", {}},
    {"loader", {"base"}},
    {"loader/tools", {"base", "loader"}},
    {"loader/python", {"base", "loader"}},
    {"tracker/openapi", {}},
    {"tracker/sqlite", {"base"}},
    {"tracker/search", {"base"}},
    {"tracker/artifacts", {"base"}},
    {"tracker/store", {"base", "tracker/sqlite", "tracker/search"}},
    {"tracker/maintenance", {"base", "tracker/store", "tracker/sqlite", "tracker/artifacts"}},
    {"tracker/api",
     {"base", "tracker/store", "tracker/search", "tracker/artifacts", "tracker/maintenance"}},
    {"tracker/auth", {"base", "tracker/api", "tracker/artifacts", "tracker/store"}},
    {"tracker/http", {"base", "tracker/api", "tracker/artifacts"}},
    {"tracker/curl", {"base"}},
    {"tracker/webhooks",
     {"base", "tracker/api", "tracker/artifacts", "tracker/curl", "tracker/search",
      "tracker/store"}},
    {"tracker/alerts", {"base", "tracker/api", "tracker/search", "tracker/store"}},
    {"tracker/client", {"base", "tracker/curl"}},
    // Files of events, which training writes and the transfer reads.
    {"tracker/tensorboard", {"base"}},
    {"tracker/transfer",
     {"base", "tracker/store", "tracker/sqlite", "tracker/artifacts", "tracker/client",
      "tracker/tensorboard"}},
    // The SQL of MLflow's own schema, which is no business of our store's.
    {"tracker/transfer/mlflow_db",
     {"base", "tracker/sqlite", "tracker/transfer", "tracker/store/types.h",
      "tracker/store/metrics/metric_block.h", "tracker/store/registry/registry_types.h",
      "tracker/artifacts"}},
    {"tuner/space", {"base"}},
    // The rows that samplers and pruners declare their options with, and nothing of theirs.
    {"tuner/options", {"base", "tuner/space"}},
    {"tuner/sampler", {"base", "tuner/space", "tuner/options"}},
    {"tuner/pruner", {"base", "tuner/space", "tuner/options"}},
    // The study file holds one of each, whichever are registered.
    {"tuner/config",
     {"base", "tuner/space", "tuner/options", "tuner/sampler", "tuner/pruner", "tuner/log_rule.h",
      "tuner/checkpoint_policy.h"}},
    {"tuner/chart", {"base"}},
    {"tuner/plots", {"base", "tuner/config", "tuner/space", "tuner/chart", "tuner/importance"}},
    {"tuner/importance", {"base", "tuner/space", "tuner/sampler/uniform.h"}},
    {"tuner/log_rule.h", {"base"}},
    {"tuner/checkpoint_policy.h", {"base"}},
    {"tuner/protocol.h", {"base", "tuner/log_rule.h", "tuner/checkpoint_policy.h"}},
    {"tuner/protocol_fields.h", {"base", "tuner/protocol.h"}},
    {"tuner/protocol.cc", {"base", "tuner/protocol.h", "tuner/protocol_fields.h"}},
    {"tuner/study",
     {"base", "tuner/config", "tuner/options", "tuner/space", "tuner/sampler", "tuner/pruner",
      "tuner/protocol.h", "tracker/store"}},
    {"tuner/interop/foreign", {"base", "tuner/config", "tuner/space"}},
    // The SQL of Optuna's schema, in one file.
    {"tuner/interop/optuna",
     {"base", "tuner/config", "tuner/space", "tuner/study", "tracker/store", "tracker/sqlite"}},
    {"tuner/api",
     {"base", "tuner/study", "tuner/config", "tuner/space", "tuner/sampler/pbt/pbt_options.h",
      "tuner/importance", "tuner/protocol.h", "tracker/api", "tracker/store"}},
    {"tuner/cli", {"base", "tuner", "tracker", "worker/agent", "worker/launch", "web"}},
    {"worker/agent", {"base", "tracker/client", "tuner/protocol.h", "tuner/log_rule.h"}},
    // The rows that engines declare their settings with, as samplers do.
    {"worker/launch", {"base", "tracker/client", "tuner/options", "tuner/space"}},
    {"worker/train", {"base", "loader", "tracker/tensorboard"}},
    {"web", {"base"}},
};

/// Libraries that only some folders may name.
const std::map<std::string, std::set<std::string>> kLibraryHomes = {
    {"torch/", {"worker/train", "worker/score"}},
    {"c10/", {"worker/train", "worker/score"}},
    {"ATen/", {"worker/train", "worker/score"}},
    {"boost/random/", {"tuner/sampler"}},
    {"boost/asio/", {"tracker/http", "tracker/client"}},
    {"boost/beast/", {"tracker/http", "tracker/client"}},
    {"sqlite3.h", {"tracker/sqlite"}},
    {"curl/", {"tracker/curl", "loader/source/http"}},
    {"openssl/", {"base/crypto", "tracker/http/tls"}},
    {"cairo/", {"tuner/chart"}},
    {"arrow/", {"loader"}},
    {"parquet/", {"loader"}},
    {"yaml-cpp/",
     {"tracker/openapi", "tracker/transfer", "tuner/config", "worker/train", "loader"}},
    {"CLI/", {"tuner/cli", "worker/train", "loader/tools"}},
};

constexpr int kBeastFilesMax = 4;

bool is_under(const std::string& path, const std::string& folder) {
    return path == folder || path.starts_with(folder + "/");
}

std::string home_of(const std::string& path) {
    std::string best;
    for (const auto& [folder, allowed] : kArrows)
        if (is_under(path, folder) && folder.size() > best.size()) best = folder;
    return best;
}

bool is_allowed(const std::string& home, const std::string& target) {
    if (is_under(target, home)) return true;
    for (const std::string& folder : kArrows.at(home))
        if (is_under(target, folder)) return true;
    return false;
}

struct Include {
    std::string file;
    std::size_t line;
    std::string target;
};

std::vector<Include> includes_of_product_code() {
    static const std::regex pattern(R"re(^\s*#\s*include\s*["<]([^">]+)[">])re");
    std::vector<Include> found;
    for (const SourceFile& file : read_sources({".h", ".cc"})) {
        if (file.path.starts_with("tests/")) continue;
        for (std::size_t i = 0; i < file.lines.size(); ++i) {
            std::smatch match;
            if (std::regex_search(file.lines[i], match, pattern))
                found.push_back({file.path, i + 1, match[1]});
        }
    }
    return found;
}

bool is_project_path(const std::string& target) {
    for (const char* top : {"base/", "loader/", "tracker/", "tuner/", "worker/", "web/", "tests/"})
        if (target.starts_with(top)) return true;
    return false;
}

TEST(Arrows, OfAllowedShapeOnly) {
    for (const Include& include : includes_of_product_code()) {
        if (!is_project_path(include.target)) continue;
        const std::string home = home_of(include.file);
        ASSERT_FALSE(home.empty())
            << include.file << " lies in a folder that the map does not know";
        EXPECT_TRUE(is_allowed(home, include.target))
            << include.file << ":" << include.line << ": " << home << " must not include "
            << include.target;
    }
}

TEST(Arrows, LibrariesStayWhereTheyBelong) {
    for (const Include& include : includes_of_product_code())
        for (const auto& [prefix, homes] : kLibraryHomes) {
            if (!include.target.starts_with(prefix)) continue;
            bool allowed = false;
            for (const std::string& home : homes) allowed = allowed || is_under(include.file, home);
            EXPECT_TRUE(allowed) << include.file << ":" << include.line << " must not include "
                                 << include.target;
        }
}

TEST(Arrows, BeastAppearsInFewFiles) {
    std::set<std::string> files;
    for (const Include& include : includes_of_product_code())
        if (include.target.starts_with("boost/beast")) files.insert(include.file);
    EXPECT_LE(files.size(), static_cast<std::size_t>(kBeastFilesMax))
        << "Beast costs 11 s a file to compile";
}

TEST(Arrows, TheTestSeesTheTree) {
    EXPECT_GT(includes_of_product_code().size(), 10u);
}

}  // namespace
}  // namespace tune::lint
