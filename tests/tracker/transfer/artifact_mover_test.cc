#include "tracker/transfer/artifact_mover.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/tracker/store/store_fixture.h"
#include "tracker/transfer/source/local_files.h"

namespace tune::tracker {
namespace {

namespace fs = std::filesystem;

/// Files of a folder of this machine, or, with `is_far`, as if they came over a network.
class FolderSource final : public FileSource {
public:
    explicit FolderSource(const fs::path& folder) : files_(folder) { files_.allow(folder, false); }

    Result<void> read_file(const ArtifactOwner& owner, const SourceFile& file,
                           const Sink& sink) override {
        ++reads;
        return files_.read(owner.uri, file, sink);
    }
    Result<UniqueFd> open_file(const ArtifactOwner& owner, const SourceFile& file) override {
        if (is_far) return Error{Code::kNotImplemented, "not on this machine"};
        return files_.open(owner.uri, file);
    }
    [[nodiscard]] Result<SourceFiles> list(const ArtifactOwner& owner) const {
        return files_.list(owner.uri);
    }

    bool is_far = false;
    int reads = 0;

private:
    LocalFiles files_;
};

class ArtifactMoverTest : public testing::Test {
protected:
    ArtifactMoverTest()
        : root_(fs::canonical(directory_.path())),
          owner_{true, "r", (root_ / "source").string()},
          store_(ArtifactStore::open(root_ / "store").value()) {
        write("source/a.txt", "hello");
        write("source/d/b.bin", std::string(700'000, 'b'));
        source_ = std::make_unique<FolderSource>(root_ / "source");
    }

    void write(const std::string& path, const std::string& text) const {
        fs::create_directories((root_ / path).parent_path());
        std::ofstream(root_ / path, std::ios::binary) << text;
    }
    std::string content(const std::string& path) const {
        std::ifstream in(root_ / path, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    /// How many files the call brought.
    std::int64_t move(ArtifactMode mode = ArtifactMode::kCopy) {
        const ArtifactMover mover(*source_, *store_, root_ / "store", mode);
        const Result<SourceFiles> files = source_->list(owner_);
        EXPECT_TRUE(files) << files.error().text();
        const Result<MovedFiles> moved = mover.move(owner_, *files, "1/r/artifacts");
        EXPECT_TRUE(moved) << moved.error().text();
        if (!moved) return -1;
        EXPECT_EQ(moved->files, 2);
        return moved->files_new;
    }

    TemporaryDirectory directory_;
    fs::path root_;
    ArtifactOwner owner_;
    std::unique_ptr<ArtifactStore> store_;
    std::unique_ptr<FolderSource> source_;
};

TEST_F(ArtifactMoverTest, BringsFilesOnce) {
    EXPECT_EQ(move(), 2);
    EXPECT_EQ(content("store/1/r/artifacts/a.txt"), "hello");
    EXPECT_EQ(content("store/1/r/artifacts/d/b.bin"), std::string(700'000, 'b'));
    EXPECT_EQ(move(), 0);
    EXPECT_EQ(source_->reads, 2);
}

TEST_F(ArtifactMoverTest, AFileOfTheSameSizeWithOtherBytesIsBroughtAnew) {
    EXPECT_EQ(move(), 2);
    write("store/1/r/artifacts/a.txt", "jello");
    EXPECT_EQ(move(), 1);
    EXPECT_EQ(content("store/1/r/artifacts/a.txt"), "hello");
    // The last byte of many, too.
    write("store/1/r/artifacts/d/b.bin", std::string(699'999, 'b') + "c");
    EXPECT_EQ(move(), 1);
    EXPECT_EQ(move(), 0);
}

TEST_F(ArtifactMoverTest, OverANetworkTheSizeTells) {
    EXPECT_EQ(move(), 2);
    source_->is_far = true;
    write("store/1/r/artifacts/a.txt", "jello");
    EXPECT_EQ(move(), 0);
    write("store/1/r/artifacts/a.txt", "hell");
    EXPECT_EQ(move(), 1);
    EXPECT_EQ(content("store/1/r/artifacts/a.txt"), "hello");
}

TEST_F(ArtifactMoverTest, LinksAreTheSameFile) {
    EXPECT_EQ(move(ArtifactMode::kLink), 2);
    EXPECT_EQ(source_->reads, 0);
    EXPECT_EQ(fs::hard_link_count(root_ / "source/a.txt"), 2u);
    EXPECT_EQ(move(ArtifactMode::kLink), 0);
}

}  // namespace
}  // namespace tune::tracker
