#include "tracker/artifacts/artifact_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "base/id.h"
#include "tracker/artifacts/artifact_path.h"

namespace tune::tracker {
namespace {

namespace fs = std::filesystem;

class ArtifactStoreTest : public testing::Test {
protected:
    void SetUp() override {
        folder_ = fs::temp_directory_path() / ("artifacts-" + random_hex(8));
        root_ = folder_ / "root";
        fs::create_directories(folder_);
        std::ofstream(folder_ / "secret") << "secret";
        auto opened = ArtifactStore::open(root_);
        ASSERT_TRUE(opened.has_value()) << opened.error().message;
        store_ = std::move(opened).value();
    }
    void TearDown() override {
        store_.reset();
        fs::remove_all(folder_);
    }

    std::string content(std::string_view path) {
        const Result<OpenArtifact> opened = store_->open_file(path);
        if (!opened) return "<" + std::string(code_name(opened.error().code)) + ">";
        std::string text(opened->size_bytes, '\0');
        EXPECT_EQ(::pread(opened->file->get(), text.data(), text.size(), 0),
                  static_cast<ssize_t>(text.size()));
        return text;
    }

    std::vector<std::string> names(std::string_view path) {
        std::vector<std::string> out;
        const std::vector<ArtifactEntry> entries = store_->list(path).value();
        for (const ArtifactEntry& entry : entries)
            out.push_back(entry.name + (entry.is_directory ? "/" : ""));
        return out;
    }

    fs::path folder_;
    fs::path root_;
    std::unique_ptr<ArtifactStore> store_;
};

TEST_F(ArtifactStoreTest, StoresReplacesListsAndDeletes) {
    ASSERT_TRUE(store_->put("1/run/artifacts/a b~+ü.txt", "one").has_value());
    ASSERT_TRUE(store_->put("1/run/artifacts/sub/x.bin", std::string("\0\1", 2)).has_value());
    EXPECT_EQ(content("1/run/artifacts/a b~+ü.txt"), "one");
    EXPECT_EQ(content("1/run/artifacts/sub/x.bin"), std::string("\0\1", 2));
    ASSERT_TRUE(store_->put("1/run/artifacts/a b~+ü.txt", "two").has_value());
    EXPECT_EQ(content("1/run/artifacts/a b~+ü.txt"), "two");
    EXPECT_THAT(names("1/run/artifacts"), testing::ElementsAre("a b~+ü.txt", "sub/"));
    EXPECT_EQ(store_->list("1/run/artifacts").value()[0].size_bytes, 3u);
    EXPECT_THAT(names("1/run/artifacts/a b~+ü.txt"), testing::IsEmpty());
    EXPECT_THAT(names("no/such/folder"), testing::IsEmpty());
    ASSERT_TRUE(store_->remove("1/run/artifacts/sub").has_value());
    ASSERT_TRUE(store_->remove("1/run/artifacts/sub").has_value()) << "a second time";
    EXPECT_EQ(content("1/run/artifacts/sub/x.bin"), "<RESOURCE_DOES_NOT_EXIST>");
    EXPECT_THAT(names("1/run/artifacts"), testing::ElementsAre("a b~+ü.txt"));
}

TEST_F(ArtifactStoreTest, AppendsAtTheEndAndOnce) {
    const auto append = [this](std::uint64_t begin, std::string_view bytes,
                               std::uint64_t end) -> std::string {
        const auto writer = store_->begin_append("d/log", begin, end);
        if (!writer) return std::string(code_name(writer.error().code));
        Result<void> done = (*writer)->write(bytes.substr(0, bytes.size() / 2));
        if (done) done = (*writer)->write(bytes.substr(bytes.size() / 2));
        if (done) done = (*writer)->commit();
        return done ? content("d/log") : std::string(code_name(done.error().code));
    };
    EXPECT_EQ(append(0, "one", 3), "RESOURCE_DOES_NOT_EXIST") << "the first time it comes whole";
    ASSERT_TRUE(store_->put("d/log", "one\n").has_value());
    EXPECT_EQ(append(4, "two\n", 8), "one\ntwo\n");
    EXPECT_EQ(append(4, "two\n", 8), "one\ntwo\n") << "a repeat";
    EXPECT_EQ(append(4, "two\nthree\n", 14), "one\ntwo\nthree\n") << "a part is there already";
    EXPECT_EQ(append(0, "xxx", 3), "one\ntwo\nthree\n") << "nothing is written over";
    EXPECT_EQ(append(20, "far", 23), "RESOURCE_CONFLICT");
    EXPECT_EQ(append(14, "short", 20), "BAD_REQUEST");
    EXPECT_EQ(append(14, "short and", 23), "one\ntwo\nthree\nshort and");
    EXPECT_EQ(append(23, "long", 25), "BAD_REQUEST");
    EXPECT_EQ(append(25, "", 25), "INVALID_PARAMETER_VALUE");
    EXPECT_EQ(store_->begin_append("d", 0, 1).error().code, Code::kResourceDoesNotExist);
    EXPECT_EQ(store_->begin_append("../secret", 6, 7).error().code, Code::kInvalidParameterValue);
    fs::create_symlink(folder_ / "secret", root_ / "d" / "link");
    EXPECT_FALSE(store_->begin_append("d/link", 6, 7).has_value());
}

TEST_F(ArtifactStoreTest, ShowsNothingOfAnUnfinishedUpload) {
    auto upload = store_->begin_upload("d/f").value();
    ASSERT_TRUE(upload->write("half").has_value());
    EXPECT_THAT(names("d"), testing::IsEmpty());
    upload.reset();
    EXPECT_THAT(names("d"), testing::IsEmpty());
    EXPECT_FALSE(fs::exists(root_ / "d"));
    EXPECT_TRUE(fs::is_empty(root_ / kStagingFolder)) << "also no temporary file";
}

TEST_F(ArtifactStoreTest, KeepsAnOpenFileReadableWhileItIsReplaced) {
    ASSERT_TRUE(store_->put("f", "old").has_value());
    const OpenArtifact old = store_->open_file("f").value();
    ASSERT_TRUE(store_->put("f", "new!").has_value());
    char text[3];
    EXPECT_EQ(::pread(old.file->get(), text, 3, 0), 3);
    EXPECT_EQ(std::string(text, 3), "old");
    EXPECT_NE(store_->open_file("f")->etag, old.etag);
}

TEST_F(ArtifactStoreTest, NeverLeavesItsFolder) {
    for (const char* path : {"../secret", "a/../../secret", "%2e%2e/secret", "/etc/passwd"}) {
        EXPECT_EQ(content(path), "<INVALID_PARAMETER_VALUE>") << path;
        EXPECT_FALSE(store_->put(path, "x").has_value()) << path;
        EXPECT_FALSE(store_->remove(path).has_value()) << path;
        EXPECT_FALSE(store_->list(path).has_value()) << path;
    }
    EXPECT_FALSE(store_->remove("").has_value());
    EXPECT_FALSE(store_->remove(".").has_value());
    EXPECT_TRUE(fs::exists(folder_ / "secret"));
    EXPECT_TRUE(fs::exists(root_));
}

TEST_F(ArtifactStoreTest, FollowsNoLinks) {
    fs::create_directory_symlink(folder_, root_ / "out");
    fs::create_symlink(folder_ / "secret", root_ / "file");
    fs::create_symlink("/proc/self/root/etc/passwd", root_ / "magic");
    ASSERT_TRUE(store_->put("real/x", "1").has_value());
    fs::create_directory_symlink(root_ / "real", root_ / "inner");
    EXPECT_EQ(content("out/secret"), "<RESOURCE_DOES_NOT_EXIST>");
    EXPECT_EQ(content("file"), "<RESOURCE_DOES_NOT_EXIST>");
    EXPECT_EQ(content("magic"), "<RESOURCE_DOES_NOT_EXIST>");
    EXPECT_EQ(content("inner/x"), "<RESOURCE_DOES_NOT_EXIST>") << "not even inside";
    EXPECT_THAT(names("out"), testing::IsEmpty());
    EXPECT_THAT(names(""), testing::ElementsAre("real/"));
    EXPECT_EQ(store_->put("out/new", "x").error().code, Code::kInvalidParameterValue);
    EXPECT_FALSE(fs::exists(folder_ / "new"));
    ASSERT_TRUE(store_->put("file", "mine").has_value()) << "replaces the link, not its target";
    EXPECT_EQ(content("file"), "mine");
    ASSERT_TRUE(store_->remove("out").has_value());
    EXPECT_FALSE(fs::exists(fs::symlink_status(root_ / "out")));
    std::ifstream secret(folder_ / "secret");
    std::string text;
    secret >> text;
    EXPECT_EQ(text, "secret");
}

TEST_F(ArtifactStoreTest, DeletesAFolderButNotWhatItsLinksPointTo) {
    ASSERT_TRUE(store_->put("d/sub/x", "1").has_value());
    fs::create_directory_symlink(folder_, root_ / "d/sub/link");
    ASSERT_TRUE(store_->remove("d").has_value());
    EXPECT_FALSE(fs::exists(root_ / "d"));
    EXPECT_TRUE(fs::exists(folder_ / "secret"));
}

TEST_F(ArtifactStoreTest, IgnoresWhatIsNoFile) {
    ASSERT_EQ(::mkfifo((root_ / "pipe").c_str(), 0600), 0);
    EXPECT_EQ(content("pipe"), "<RESOURCE_DOES_NOT_EXIST>");
    EXPECT_THAT(names(""), testing::IsEmpty());
}

TEST_F(ArtifactStoreTest, NamesFilesInTheWayOfFoldersAndTheOtherWayRound) {
    ASSERT_TRUE(store_->put("file", "x").has_value());
    EXPECT_EQ(store_->put("file/inner", "y").error().code, Code::kInvalidParameterValue);
    ASSERT_TRUE(store_->put("folder/x", "x").has_value());
    EXPECT_EQ(store_->put("folder", "y").error().code, Code::kInvalidParameterValue);
    EXPECT_EQ(content("folder"), "<BAD_REQUEST>");
    EXPECT_EQ(content("file/inner"), "<RESOURCE_DOES_NOT_EXIST>");
    const std::string long_name(300, 'n');
    EXPECT_EQ(content(long_name), "<RESOURCE_DOES_NOT_EXIST>");
    EXPECT_EQ(store_->put(long_name, "y").error().code, Code::kInvalidParameterValue);
}

TEST_F(ArtifactStoreTest, ReportsAFullDiskAndLeavesTheOldFile) {
    ASSERT_TRUE(store_->put("f", "old").has_value());
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    rlimit small = before;
    small.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &small);
    const Result<void> put = store_->put("f", std::string(100'000, 'x'));
    setrlimit(RLIMIT_FSIZE, &before);
    ASSERT_FALSE(put.has_value());
    EXPECT_EQ(put.error().code, Code::kResourceExhausted);
    EXPECT_EQ(content("f"), "old");
    EXPECT_THAT(names(""), testing::ElementsAre("f"));
    ASSERT_TRUE(store_->put("f", "new").has_value());
}

TEST_F(ArtifactStoreTest, LetsTheLastOfManyWritersWin) {
    std::vector<std::thread> writers;
    for (int i = 0; i < 8; ++i)
        writers.emplace_back([this, i] {
            for (int k = 0; k < 20; ++k)
                EXPECT_TRUE(store_->put("same/f", std::string(1000, static_cast<char>('a' + i)))
                                .has_value());
        });
    for (std::thread& writer : writers) writer.join();
    const std::string text = content("same/f");
    EXPECT_EQ(text, std::string(1000, text[0])) << "never a mixture";
    EXPECT_THAT(names("same"), testing::ElementsAre("f"));
}

TEST(ArtifactStoreOpen, NamesAFolderThatCannotBeMade) {
    const auto opened = ArtifactStore::open("/proc/no-such/artifacts");
    ASSERT_FALSE(opened.has_value());
    EXPECT_EQ(opened.error().code, Code::kPermissionDenied);
    EXPECT_THAT(opened.error().message, testing::HasSubstr("/proc/no-such/artifacts"));
}

}  // namespace
}  // namespace tune::tracker
