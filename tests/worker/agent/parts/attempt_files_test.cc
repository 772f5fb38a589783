#include "worker/agent/attempts/attempt_files.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "tests/worker/agent/scratch.h"
#include "worker/agent/pools/pool_journal.h"
#include "worker/agent/start/spare_folders.h"

namespace tune::worker {
namespace {

class AttemptFilesTest : public testing::Test {
protected:
    AttemptFilesTest() : files_(scratch_.path() / "run-1") {
        record_.serial = 0xfedcba9876543210u;
        record_.lease.study = "s";
        record_.lease.run_id = "run";
        record_.lease.attempt = 1;
        record_.lease.command = {"python", "train.py", "--name=a b"};
        record_.lease.scrape = {{"", "loss"}};
        record_.server_url = "http://h:1";
        record_.finish_request_id = "f";
        record_.boot_id = "b";
        record_.started_ms = 12;
        record_.oom_kills = 3;
        record_.cores = {1, 2};
        record_.gpus = {"GPU-a"};
    }

    Scratch scratch_;
    AttemptFiles files_;
    AttemptRecord record_;
};

TEST_F(AttemptFilesTest, KeepTheRecord) {
    ASSERT_TRUE(files_.create(record_));
    const AttemptRecord read = files_.read_record().value();
    EXPECT_EQ(read.serial, record_.serial);
    EXPECT_EQ(read.lease.command, record_.lease.command);
    EXPECT_EQ(read.lease.scrape, record_.lease.scrape);
    EXPECT_EQ(read.id(), record_.id());
    EXPECT_EQ(read.server_url, "http://h:1");
    EXPECT_EQ(read.finish_request_id, "f");
    EXPECT_EQ(read.boot_id, "b");
    EXPECT_EQ(read.oom_kills, 3);
    EXPECT_EQ(read.cores, record_.cores);
    EXPECT_EQ(read.gpus, record_.gpus);
}

TEST_F(AttemptFilesTest, TheRecordIsForItsOwnerAndHoldsNoSecret) {
    record_.lease.token = "tune-attempt.run-1.1.secret";
    record_.lease.env = {{"WANDB_API_KEY", "key-of-the-user"}};
    ASSERT_TRUE(files_.create(record_));
    const auto path = files_.path("attempt.json");
    EXPECT_EQ(std::filesystem::status(path).permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    std::ifstream in(path);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    EXPECT_NE(text.find(record_.lease.run_id), std::string::npos);
    EXPECT_EQ(text.find("secret"), std::string::npos) << text;
    EXPECT_EQ(text.find("key-of-the-user"), std::string::npos) << text;
    EXPECT_EQ(files_.read_record()->id(), record_.id());
}

TEST_F(AttemptFilesTest, DamagedRecordsAreNamed) {
    ASSERT_TRUE(files_.create(record_));
    scratch_.append("run-1/attempt.json", "garbage");
    EXPECT_FALSE(files_.read_record());
    EXPECT_FALSE(AttemptFiles(scratch_.path() / "none").read_record());
}

TEST_F(AttemptFilesTest, ProgressAndIntentComeBack) {
    ASSERT_TRUE(files_.create(record_));
    EXPECT_EQ(files_.read_intent().intent, Intent::kNone);
    EXPECT_EQ(files_.read_progress().acknowledged.offset[0], 0);
    ASSERT_TRUE(files_.write_intent({Intent::kPrune, "worse than the median"}));
    EXPECT_EQ(files_.read_intent().intent, Intent::kPrune);
    EXPECT_EQ(files_.read_intent().reason, "worse than the median");
    ProgressRecord written;
    written.acknowledged.offset = {100, 20};
    written.acknowledged.next_steps["loss"] = 5;
    written.sent = {{{140, 20}, 77}, {{150, 30}, 78}};
    ASSERT_TRUE(files_.write_progress(written));
    const ProgressRecord progress = files_.read_progress();
    EXPECT_EQ(progress.acknowledged.offset, (std::array<std::int64_t, 2>{100, 20}));
    EXPECT_EQ(progress.acknowledged.next_steps.at("loss"), 5);
    ASSERT_EQ(progress.sent.size(), 2u);
    EXPECT_EQ(progress.sent[1].end, (std::array<std::int64_t, 2>{150, 30}));
    EXPECT_EQ(progress.sent[1].timestamp_ms, 78);
}

TEST_F(AttemptFilesTest, OneOwnerOnly) {
    ASSERT_TRUE(files_.create(record_));
    EXPECT_EQ(files_.read_or_take_ownership().value().pid, 0);
    EXPECT_NE(symlink("1 2", files_.path(kOwnerLink).c_str()), 0);
    EXPECT_EQ(files_.read_or_take_ownership().value().pid, 0);
    files_.remove();
    ASSERT_TRUE(files_.create(record_));
    ASSERT_EQ(symlink("41 4242", files_.path(kOwnerLink).c_str()), 0);
    const Owner owner = files_.read_or_take_ownership().value();
    EXPECT_EQ(owner.pid, 41);
    EXPECT_EQ(owner.start_time, 4242);
}

TEST_F(AttemptFilesTest, TheFileOfAnOwnerWaitsForTheNextOne) {
    SpareFolders spares(scratch_.path() / "spare");
    ASSERT_TRUE(spares.make(files_, record_));
    ASSERT_EQ(symlink("41 4242", files_.path(kOwnerLink).c_str()), 0);
    const std::filesystem::path spare = files_.path(kOwnerLink).string() + kSpareSuffix;
    for (const char* owner : {"42 77", "4000000 123456789012"}) {
        std::filesystem::create_directory(files_.path(kArtifactFolder));
        spares.take_back(files_);
        ASSERT_TRUE(spares.make(files_, record_));
        EXPECT_EQ(std::filesystem::file_size(spare), std::size_t{kOwnerBytes});
        // As a supervisor does.
        std::fstream(spare, std::ios::in | std::ios::out) << owner << ' ';
        std::filesystem::rename(spare, files_.path(kOwnerLink));
        const Owner read = files_.read_or_take_ownership().value();
        EXPECT_EQ(std::to_string(read.pid) + " " + std::to_string(read.start_time), owner);
    }
}

TEST_F(AttemptFilesTest, RemoveLeavesNothing) {
    ASSERT_TRUE(files_.create(record_));
    files_.note("hello");
    scratch_.append("run-1/unexpected", "x");
    files_.remove();
    EXPECT_FALSE(std::filesystem::exists(files_.directory()));
}

TEST(BootId, IsKnown) {
    EXPECT_EQ(current_boot_id().size(), 36u);
}

/// Acknowledged up to `offset` of stdout.
ProgressRecord up_to(std::int64_t offset) {
    ProgressRecord progress;
    progress.acknowledged.offset = {offset, 0};
    progress.acknowledged.next_steps["loss"] = offset;
    return progress;
}

TEST_F(AttemptFilesTest, TheLastWholeLineOfProgressCounts) {
    ASSERT_TRUE(files_.create(record_));
    ASSERT_TRUE(files_.write_progress(up_to(1)));
    ASSERT_TRUE(files_.write_progress(up_to(5)));
    EXPECT_EQ(files_.read_progress().acknowledged.offset[0], 5);
    std::ofstream(files_.path(kProgressFile), std::ios::app) << "\n{\"acknowledged\":[9,";
    EXPECT_EQ(files_.read_progress().acknowledged.offset[0], 5) << "a line that a full disk cut";
    EXPECT_EQ(files_.read_progress().acknowledged.next_steps.at("loss"), 5);
    ASSERT_TRUE(files_.write_progress(up_to(12)));
    EXPECT_EQ(files_.read_progress().acknowledged.offset[0], 12);
}

TEST_F(AttemptFilesTest, ProgressStaysSmall) {
    ASSERT_TRUE(files_.create(record_));
    for (std::int64_t i = 0; i < 10'000; ++i) ASSERT_TRUE(files_.write_progress(up_to(i)));
    EXPECT_LT(std::filesystem::file_size(files_.path(kProgressFile)), 300u << 10);
    EXPECT_EQ(files_.read_progress().acknowledged.offset[0], 9'999);
}

TEST_F(AttemptFilesTest, AFolderServesTheNextAttemptAndShowsNothingOfTheLast) {
    SpareFolders spares(scratch_.path() / "spare");
    ASSERT_TRUE(spares.make(files_, record_));
    std::filesystem::create_directory(files_.path(kArtifactFolder));
    for (const char* name : {kStdoutFile, kStderrFile, kAgentLogFile, kDiffFile, kExitFile})
        std::ofstream(files_.path(name)) << "{\"exit_code\": 1}";
    ASSERT_TRUE(files_.write_intent({Intent::kPrune, "why"}));
    ASSERT_TRUE(files_.write_progress(up_to(1)));
    EXPECT_EQ(files_.read_or_take_ownership().value().pid, 0);
    spares.take_back(files_);
    EXPECT_FALSE(std::filesystem::exists(files_.directory()));

    const AttemptFiles next(scratch_.path() / "run-2");
    record_.lease.run_id = "other";
    ASSERT_TRUE(spares.make(next, record_));
    EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "spare" / "0"));
    EXPECT_EQ(next.read_record().value().lease.run_id, "other");
    EXPECT_EQ(next.read_intent().intent, Intent::kNone);
    EXPECT_EQ(next.read_progress().acknowledged.offset[0], 0);
    EXPECT_FALSE(next.read_exit());
    for (const char* name : {kStdoutFile, kStderrFile, kAgentLogFile, kDiffFile, kOwnerLink})
        EXPECT_FALSE(std::filesystem::exists(next.path(name))) << name;
}

TEST_F(AttemptFilesTest, AFolderWithArtifactsIsRemoved) {
    SpareFolders spares(scratch_.path() / "spare");
    ASSERT_TRUE(spares.make(files_, record_));
    std::filesystem::create_directory(files_.path(kArtifactFolder));
    std::ofstream(files_.path(kArtifactFolder) / "model.bin") << "weights";
    spares.take_back(files_);
    EXPECT_FALSE(std::filesystem::exists(files_.directory()));
    ASSERT_TRUE(spares.make(files_, record_));
    EXPECT_FALSE(std::filesystem::exists(files_.path(kArtifactFolder)));
}

TEST_F(AttemptFilesTest, AJournalOfAPoolIsReadAsItWasWritten) {
    const auto path = scratch_.path() / "journal";
    PoolJournal journal(path);
    journal.note_read({100, 1});
    journal.note_settled("run/1");
    PoolJournal(path).note_read({250, 2});  // of the next agent
    const PoolJournal::Notes notes = PoolJournal(path).read();
    ASSERT_EQ(notes.read.size(), 2u);
    EXPECT_EQ(notes.read[1].end, 250);
    EXPECT_EQ(notes.read[1].timestamp_ms, 2);
    EXPECT_EQ(notes.settled, std::set<std::string>{"run/1"});
}

}  // namespace
}  // namespace tune::worker
