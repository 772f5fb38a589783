#include "worker/agent/checkpoints/checkpoint_sync.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <string>

#include "tests/worker/agent/scratch.h"

namespace tune::worker {
namespace {

namespace fs = std::filesystem;
using Files = std::map<std::string, std::string>;

/// A checkpoint folder on one machine and its store, which is a folder.
class CheckpointSyncTest : public testing::Test {
protected:
    void write(const std::string& name, const std::string& content) {
        fs::create_directories((folder_ / name).parent_path());
        std::ofstream(folder_ / (name + ".tmp"), std::ios::binary) << content;
        fs::rename(folder_ / (name + ".tmp"), folder_ / name);
    }
    static Files content(const fs::path& folder) {
        Files files;
        for (const auto& item : fs::recursive_directory_iterator(folder)) {
            if (!item.is_regular_file()) continue;
            std::ifstream in(item.path(), std::ios::binary);
            files[item.path().lexically_relative(folder).string()] = {
                std::istreambuf_iterator<char>(in), {}};
        }
        return files;
    }
    void write_elsewhere() {
        fs::create_directories(elsewhere_);
        std::ofstream(elsewhere_ / "before") << "b";
    }
    Result<Saved> save_as(int attempt, SaveState& state, int keep = 2) {
        return save(*store_, {folder_, scratch_.path() / "staging", attempt, keep}, state);
    }
    Restored bring() {
        Result<Restored> restored = restore(*store_, elsewhere_, scratch_.path() / "incoming");
        EXPECT_TRUE(restored) << restored.error().text();
        return restored ? *restored : Restored();
    }
    std::set<std::string> names(const std::string& folder) {
        const auto listed = store_->list(folder);
        return {listed->begin(), listed->end()};
    }

    Scratch scratch_;
    const fs::path folder_ = scratch_.path() / "here";
    const fs::path elsewhere_ = scratch_.path() / "there";
    const fs::path stored_ = scratch_.path() / "store" / "run";
    std::unique_ptr<CheckpointStore> store_ = folder_store(scratch_.path() / "store", "run");
};

TEST_F(CheckpointSyncTest, AFolderArrivesAsItIs) {
    write("last", "1");
    write("deep/er/weights", std::string(3'000'000, 'w'));
    fs::create_directory_symlink("deep", folder_ / "link");
    std::ofstream(folder_ / "half.tmp") << "half";
    SaveState state;
    const Result<Saved> saved = save_as(1, state);
    ASSERT_TRUE(saved) << saved.error().text();
    EXPECT_TRUE(saved->is_new);
    EXPECT_EQ(saved->bytes_sent, 3'000'001u);
    write_elsewhere();
    const Restored restored = bring();
    ASSERT_TRUE(restored.number);
    EXPECT_EQ(*restored.number, (CheckpointNumber{1, 1}));
    EXPECT_EQ(content(elsewhere_),
              (Files{{"last", "1"}, {"deep/er/weights", std::string(3'000'000, 'w')}}));
    EXPECT_EQ(fs::read_symlink(elsewhere_ / "link"), "deep");
}

TEST_F(CheckpointSyncTest, OnlyWhatChangedIsSentAndOldSetsGo) {
    SaveState state;
    write("same", std::string(1'000, 's'));
    for (int i = 0; i < 10; ++i) {
        write("last", std::string(100, static_cast<char>('a' + i)));
        const Result<Saved> saved = save_as(1, state);
        ASSERT_TRUE(saved);
        EXPECT_EQ(saved->bytes_sent, i == 0 ? 1'100u : 100u);
        EXPECT_FALSE(save_as(1, state)->is_new) << "nothing changed";
    }
    EXPECT_EQ(names("").size(), 3u) << "two manifests, and the files";
    EXPECT_EQ(names("files").size(), 3u) << "the one that stays, and two of the other";
    // Another process of the same attempt knows what is there.
    SaveState anew;
    write("last", "new");
    EXPECT_EQ(save_as(1, anew)->bytes_sent, 3u);
}

TEST_F(CheckpointSyncTest, ADamagedSetFallsBackToTheOneBefore) {
    SaveState state;
    for (const char* text : {"one", "two", "three"}) {
        write("last", text);
        ASSERT_TRUE(save_as(1, state, 3));
    }
    const CheckpointSet newest = *read_manifest(*store_->read(manifest_name({1, 3})));
    std::ofstream(stored_ / "files" / newest.files.front().sha256) << "thrEe";
    Restored restored = bring();
    EXPECT_EQ(*restored.number, (CheckpointNumber{1, 2}));
    ASSERT_EQ(restored.damaged.size(), 1u);
    EXPECT_EQ(restored.damaged.front(),
              "the stored checkpoint 3 of attempt 1 cannot be used: its file 'last' is damaged");
    EXPECT_EQ(content(elsewhere_), (Files{{"last", "two"}}));
    // What was damaged is sent anew, not relied on.
    SaveState later;
    write("last", "three");
    EXPECT_EQ(save_as(2, later, 3)->bytes_sent, 5u);
    EXPECT_EQ(*bring().number, (CheckpointNumber{2, 1}));

    std::ofstream(stored_ / manifest_name({2, 1})) << "{\"files\": [";
    restored = bring();
    EXPECT_EQ(restored.damaged.front(),
              "the stored checkpoint 1 of attempt 2 cannot be used: its manifest is not JSON");
    EXPECT_EQ(content(elsewhere_)["last"], "three") << "the same file, named by set 3";
}

TEST_F(CheckpointSyncTest, AHalfUploadedSetIsNotSeen) {
    SaveState state;
    write("last", "one");
    ASSERT_TRUE(save_as(1, state));
    fs::create_directories(stored_ / "files");
    std::ofstream(stored_ / "files" / std::string(64, 'a')) << "left by a killed upload";
    EXPECT_EQ(*bring().number, (CheckpointNumber{1, 1}));
    write("last", "two");
    ASSERT_TRUE(save_as(1, state));
    EXPECT_EQ(names("files").size(), 2u) << "and it went";
}

TEST_F(CheckpointSyncTest, AnOldAttemptChangesNothing) {
    SaveState old;
    write("last", "old");
    ASSERT_TRUE(save_as(1, old));
    SaveState newer;
    write("last", "new");
    ASSERT_TRUE(save_as(2, newer));
    const auto before = content(stored_);
    SaveState old_anew;
    write("last", "zombie");
    EXPECT_EQ(save_as(1, old_anew).error().code, Code::kResourceConflict);
    EXPECT_EQ(content(stored_), before);
    EXPECT_EQ(*bring().number, (CheckpointNumber{2, 1}));
}

TEST_F(CheckpointSyncTest, WithoutAWholeSetTheFolderStays) {
    write_elsewhere();
    EXPECT_FALSE(bring().number);
    SaveState state;
    write("last", "one");
    ASSERT_TRUE(save_as(1, state));
    for (const std::string& name : names("files")) fs::remove(stored_ / "files" / name);
    const Restored restored = bring();
    EXPECT_FALSE(restored.number);
    EXPECT_EQ(restored.damaged.size(), 1u);
    EXPECT_EQ(content(elsewhere_), (Files{{"before", "b"}}));
}

TEST(CheckpointManifest, LeadsNowhereElse) {
    for (const char* path : {"../x", "/etc/x", "a/../../x", "", "./x"}) {
        const CheckpointSet set{{1, 1}, {{path, 1, std::string(64, 'a'), ""}}};
        EXPECT_EQ(read_manifest(manifest_text(set)).error().code, Code::kDataLoss) << path;
    }
    for (const char* link : {"../x", "/etc/x", "a/../../x"}) {
        const CheckpointSet set{{1, 1}, {{"name", 0, "", link}}};
        EXPECT_EQ(read_manifest(manifest_text(set)).error().code, Code::kDataLoss) << link;
    }
    std::string text = manifest_text({{1, 1}, {{"name", 1, std::string(64, 'a'), ""}}});
    ASSERT_TRUE(read_manifest(text));
    text.replace(text.find("name"), 4, "mane");
    EXPECT_EQ(read_manifest(text).error().message, "its manifest is damaged");
    EXPECT_EQ(*manifest_number(manifest_name({3, 12})), (CheckpointNumber{3, 12}));
    EXPECT_FALSE(manifest_number("manifest-1.json"));
}

TEST(FolderSnapshot, HoldsAMomentOfAFolderThatChanges) {
    const Scratch scratch;
    fs::create_directories(scratch.path() / "f");
    scratch.append("f/a", "one");
    scratch.append("f/b", "two");
    auto snapshot = FolderSnapshot::take(scratch.path() / "f", scratch.path() / "held");
    ASSERT_TRUE(snapshot);
    scratch.append("f/new", "three");
    fs::rename(scratch.path() / "f/new", scratch.path() / "f/a");
    EXPECT_TRUE(snapshot->is_intact(0)) << "another file took its name";
    EXPECT_EQ(scratch.read("held/0"), "one");
    // The same size: only the time shows it.
    std::ofstream(scratch.path() / "f/b") << "TWO";
    struct timespec times[2] = {{1, 0}, {1, 0}};
    utimensat(AT_FDCWD, (scratch.path() / "f/b").c_str(), times, 0);
    EXPECT_FALSE(snapshot->is_intact(1)) << "somebody wrote into it";
    for (const char* name : {".lock", "a.tmp", ".last.safetensors.0123abcd", "x.part"})
        EXPECT_TRUE(is_passing_name(name)) << name;
    for (const char* name : {".metadata", "last.safetensors", "a.0123abcd", ".tune", "tmp"})
        EXPECT_FALSE(is_passing_name(name)) << name;
}

}  // namespace
}  // namespace tune::worker
