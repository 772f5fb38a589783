#include "tracker/transfer/source/local_files.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/tracker/store/store_fixture.h"
#include "tracker/transfer/source/file_tree.h"

namespace tune::tracker {
namespace {

namespace fs = std::filesystem;

class LocalFilesTest : public testing::Test {
protected:
    LocalFilesTest() : root_(fs::canonical(directory_.path())), files_(root_) {
        write("mlartifacts/1/r/artifacts/a b.txt", "hello");
        write("mlruns/1/r/artifacts/c.txt", "x");
        write("outside/secret.txt", "secret");
        files_.allow(root_ / "mlartifacts", true);
        files_.allow(root_ / "mlruns", false);
    }

    void write(const std::string& path, const std::string& text) const {
        fs::create_directories((root_ / path).parent_path());
        std::ofstream(root_ / path) << text;
    }

    /// "path ..." of what a URI lists; "elsewhere" or "outside".
    std::string listed(const std::string& uri) const {
        const Result<SourceFiles> files = files_.list(uri);
        if (!files) return files.error().text();
        if (files->place == SourceFiles::Place::kElsewhere) return "elsewhere";
        if (files->place == SourceFiles::Place::kOutside) return "outside";
        std::string text;
        for (const SourceFile& file : files->files) text += (text.empty() ? "" : " ") + file.path;
        return text;
    }

    TemporaryDirectory directory_;
    fs::path root_;
    LocalFiles files_;
};

TEST_F(LocalFilesTest, FindsFilesByEveryKindOfAddress) {
    EXPECT_EQ(listed("mlflow-artifacts:/1/r/artifacts"), "a b.txt");
    EXPECT_EQ(listed("mlflow-artifacts://host:5000/1/r/artifacts"), "a b.txt");
    EXPECT_EQ(listed((root_ / "mlruns/1/r/artifacts").string()), "c.txt");
    EXPECT_EQ(listed("file://" + (root_ / "mlruns/1/r/artifacts").string()), "c.txt");
    EXPECT_EQ(listed("file:" + (root_ / "mlruns/1/r/artifacts").string()), "c.txt");
    EXPECT_EQ(listed("./mlruns/1/r/artifacts"), "c.txt");
    EXPECT_EQ(listed((root_ / "mlruns/1/none").string()), "");
    EXPECT_EQ(listed("s3://bucket/x"), "elsewhere");
}

TEST_F(LocalFilesTest, AFolderThatMlflowHasNotMadeHoldsNothing) {
    LocalFiles files(root_ / "new");
    files.allow(root_ / "new/mlruns", false);
    files.allow(root_ / "new/mlartifacts", true);
    const auto at = [&](const std::string& uri) { return files.list(uri).value(); };
    EXPECT_EQ(at((root_ / "new/mlruns/1/r/artifacts").string()).place, SourceFiles::Place::kHere);
    EXPECT_TRUE(at((root_ / "new/mlruns/1/r/artifacts").string()).files.empty());
    EXPECT_EQ(at((root_ / "new/other").string()).place, SourceFiles::Place::kOutside);
    EXPECT_EQ(at("mlflow-artifacts:/1/r/artifacts").place, SourceFiles::Place::kOutside)
        << "where a server kept them is not known";
}

TEST_F(LocalFilesTest, ReadsNothingOutside) {
    for (const std::string& uri :
         {(root_ / "outside").string(), "file://" + (root_ / "outside").string(), std::string("/"),
          std::string(""), (root_ / "mlruns/../outside").string(),
          std::string("mlflow-artifacts:/../outside"), std::string("../outside"),
          "file://" + (root_ / "mlruns").string() + "/%2e%2e/outside", root_.string()})
        EXPECT_EQ(listed(uri), "outside") << uri;
}

TEST_F(LocalFilesTest, FollowsNoLink) {
    fs::create_directory_symlink(root_ / "outside", root_ / "mlruns/1/link");
    fs::create_symlink(root_ / "outside/secret.txt", root_ / "mlruns/1/r/artifacts/l.txt");
    EXPECT_NE(listed((root_ / "mlruns/1/link").string()), "secret.txt");
    EXPECT_EQ(listed((root_ / "mlruns/1/r/artifacts").string()), "c.txt");
    std::string read;
    const Result<void> done = files_.read((root_ / "mlruns/1/r/artifacts").string(), {"l.txt", 1},
                                          [&](std::string_view bytes) -> Result<void> {
                                              read += bytes;
                                              return {};
                                          });
    EXPECT_FALSE(done);
    EXPECT_EQ(read, "");
}

TEST_F(LocalFilesTest, LinesComeWholeWhateverTheirLength) {
    std::string text;
    for (int i = 0; i < 5000; ++i)
        text += std::string(static_cast<std::size_t>(i % 300), 'x') + "\n";
    write("tree/lines", text + "last");
    auto tree = FileTree::open(root_ / "tree");
    ASSERT_TRUE(tree);
    std::string again;
    const auto take = [&](std::string_view line, std::int64_t number) -> Result<void> {
        again += std::string(line) + (number <= 5000 ? "\n" : "");
        return {};
    };
    ASSERT_TRUE(tree->for_each_line("lines", 1000, take));
    EXPECT_EQ(again, text + "last");
    EXPECT_FALSE(tree->for_each_line("../outside/secret.txt", 1000, take));
    write("tree/long", std::string(2'000'000, 'x'));
    EXPECT_FALSE(tree->for_each_line("long", 1000, take));
    EXPECT_FALSE(tree->read("long", 1000));
}

}  // namespace
}  // namespace tune::tracker
