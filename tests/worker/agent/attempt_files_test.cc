#include "worker/agent/attempts/attempt_files.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/worker/agent/scratch.h"

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

}  // namespace
}  // namespace tune::worker
