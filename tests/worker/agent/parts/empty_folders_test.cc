// Checkpoint folders that are used again: none with something in it, none with other rights.

#include "worker/agent/checkpoints/empty_folders.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/worker/agent/scratch.h"

namespace tune::worker {
namespace {

namespace fs = std::filesystem;

ino_t inode_of(const fs::path& path) {
    struct stat info {};
    return stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

class EmptyFoldersTest : public testing::Test {
protected:
    [[nodiscard]] fs::path folder(const std::string& name) const {
        return scratch_.path() / "checkpoints" / name;
    }

    Scratch scratch_;
    EmptyFolders folders_{scratch_.path() / "empty", scratch_.path() / "checkpoints"};
};

TEST_F(EmptyFoldersTest, AnEmptyOneIsTheNextOnes) {
    ASSERT_TRUE(folders_.make(folder("study/1")));
    const ino_t first = inode_of(folder("study/1"));
    folders_.take_back(folder("study/1"));
    EXPECT_FALSE(fs::exists(folder("study/1")));
    ASSERT_TRUE(folders_.make(folder("study/2")));
    EXPECT_EQ(inode_of(folder("study/2")), first);
    EXPECT_TRUE(fs::is_empty(folder("study/2")));
    EXPECT_TRUE(fs::is_empty(scratch_.path() / "empty"));
}

TEST_F(EmptyFoldersTest, OneWithACheckpointStays) {
    ASSERT_TRUE(folders_.make(folder("study/1")));
    std::ofstream(folder("study/1") / "model.pt") << "weights";
    folders_.take_back(folder("study/1"));
    EXPECT_TRUE(fs::exists(folder("study/1") / "model.pt"));
    EXPECT_FALSE(fs::exists(scratch_.path() / "empty" / "0"));
}

TEST_F(EmptyFoldersTest, OneThatIsThereIsNotReplaced) {
    ASSERT_TRUE(folders_.make(folder("study/1")));
    folders_.take_back(folder("study/1"));
    fs::create_directories(folder("study/2"));
    std::ofstream(folder("study/2") / "model.pt") << "weights";
    fs::create_directories(folder("study/3"));
    const ino_t third = inode_of(folder("study/3"));
    ASSERT_TRUE(folders_.make(folder("study/2")));
    ASSERT_TRUE(folders_.make(folder("study/3")));
    EXPECT_TRUE(fs::exists(folder("study/2") / "model.pt"));
    EXPECT_EQ(inode_of(folder("study/3")), third);
}

TEST_F(EmptyFoldersTest, OneWithOtherRightsIsNobodysAgain) {
    ASSERT_TRUE(folders_.make(folder("study/1")));
    fs::permissions(folder("study/1"), fs::perms::owner_all | fs::perms::sticky_bit);
    folders_.take_back(folder("study/1"));
    EXPECT_FALSE(fs::exists(folder("study/1")));
    ASSERT_TRUE(folders_.make(folder("study/2")));
    EXPECT_EQ(fs::status(folder("study/2")).permissions() & fs::perms::sticky_bit, fs::perms::none);
}

TEST_F(EmptyFoldersTest, FoldersElsewhereAreMadeAndRemoved) {
    const fs::path elsewhere = scratch_.path() / "shared" / "study" / "1";
    ASSERT_TRUE(folders_.make(elsewhere));
    EXPECT_TRUE(fs::is_directory(elsewhere));
    folders_.take_back(elsewhere);
    EXPECT_FALSE(fs::exists(elsewhere));
    EXPECT_FALSE(fs::exists(scratch_.path() / "empty"));
}

TEST_F(EmptyFoldersTest, AFileInItsPlaceIsAnError) {
    scratch_.append("checkpoints", "a file");
    const Result<void> made = folders_.make(folder("study/1"));
    ASSERT_FALSE(made);
    EXPECT_NE(made.error().message.find((folder("study/1")).string()), std::string::npos);
}

TEST_F(EmptyFoldersTest, NothingIsLeftAtTheEnd) {
    {
        EmptyFolders folders(scratch_.path() / "other", scratch_.path() / "checkpoints");
        ASSERT_TRUE(folders.make(folder("study/1")));
        folders.take_back(folder("study/1"));
        EXPECT_TRUE(fs::exists(scratch_.path() / "other"));
    }
    EXPECT_FALSE(fs::exists(scratch_.path() / "other"));
}

}  // namespace
}  // namespace tune::worker
