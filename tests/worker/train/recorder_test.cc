#include "worker/train/recorder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <limits>
#include <new>
#include <thread>

#include "base/id.h"
#include "base/system/file.h"

namespace tune::train {
namespace {

class RecorderTest : public testing::Test {
protected:
    RecorderTest()
        : directory_(std::filesystem::temp_directory_path() / ("recorder_test." + random_hex(6))) {
        EXPECT_EQ(pipe2(pipe_, O_CLOEXEC), 0);
        signal(SIGPIPE, SIG_IGN);
    }
    ~RecorderTest() override {
        close_reader();
        close_writer();
        std::filesystem::remove_all(directory_);
    }
    void close_reader() {
        if (pipe_[0] >= 0) close(pipe_[0]);
        pipe_[0] = -1;
    }
    void close_writer() {
        if (pipe_[1] >= 0) close(pipe_[1]);
        pipe_[1] = -1;
    }
    /// What was written, after the writer's end is closed.
    std::string read_all() {
        close_writer();
        std::string text;
        char buffer[4096];
        for (ssize_t n = 0; (n = read(pipe_[0], buffer, sizeof buffer)) > 0;)
            text.append(buffer, static_cast<std::size_t>(n));
        return text;
    }
    CheckpointDirectory open_directory() {
        return std::move(CheckpointDirectory::open(directory_)).value();
    }

    std::filesystem::path directory_;
    int pipe_[2] = {-1, -1};
};

TEST_F(RecorderTest, WritesLinesInOrder) {
    std::string expected;
    {
        Recorder recorder(pipe_[1], nullptr);
        for (int i = 0; i < 1000; ++i) {
            recorder.line(std::to_string(i) + "\n");
            expected += std::to_string(i) + "\n";
        }
    }
    EXPECT_EQ(read_all(), expected);
}

TEST_F(RecorderTest, DrainWaitsForLinesAndCheckpoints) {
    const CheckpointDirectory directory = open_directory();
    Recorder recorder(pipe_[1], &directory);
    recorder.line("a\n");
    recorder.checkpoint({.last = "one", .best = "best"});
    recorder.drain();
    EXPECT_EQ(read_file(directory.last()).value(), "one");
    EXPECT_EQ(read_file(directory.best()).value(), "best");
    recorder.checkpoint({.last = "two", .best = {}});
    recorder.drain();
    EXPECT_EQ(read_file(directory.last()).value(), "two");
    EXPECT_EQ(read_file(directory.best()).value(), "best");
}

/// A reader that does not read holds the recorder's thread in a write; what is given meanwhile
/// waits, and of the checkpoints only the newest is written, with the newest best.
TEST_F(RecorderTest, ReplacesACheckpointThatWasNotBegun) {
    const CheckpointDirectory directory = open_directory();
    const std::string block(1 << 20, 'x');  // more than a pipe holds
    Recorder recorder(pipe_[1], &directory);
    recorder.line(block);
    recorder.checkpoint({.last = "one", .best = "best one"});
    recorder.checkpoint({.last = "two", .best = "best two"});
    recorder.checkpoint({.last = "three", .best = {}});
    EXPECT_FALSE(std::filesystem::exists(directory.last())) << "lines come first";
    std::string text(block.size(), ' ');
    for (std::size_t place = 0; place < text.size();) {
        const ssize_t n = read(pipe_[0], text.data() + place, text.size() - place);
        ASSERT_GT(n, 0);
        place += static_cast<std::size_t>(n);
    }
    recorder.drain();
    EXPECT_EQ(text, block);
    EXPECT_EQ(read_file(directory.last()).value(), "three");
    EXPECT_EQ(read_file(directory.best()).value(), "best two");
}

/// Layout and digest of a large model take as long as a step or several.
TEST_F(RecorderTest, MakesTheBytesItself) {
    const CheckpointDirectory directory = open_directory();
    Recorder recorder(pipe_[1], &directory);
    std::thread::id made_by;
    recorder.checkpoint({.last = FileBytes([&] {
                             made_by = std::this_thread::get_id();
                             return std::string("made");
                         }),
                         .best = "best"});
    recorder.drain();
    EXPECT_EQ(read_file(directory.last()).value(), "made");
    EXPECT_NE(made_by, std::thread::id());
    EXPECT_NE(made_by, std::this_thread::get_id());
}

TEST_F(RecorderTest, BytesThatCannotBeMadeAreNoCheckpoint) {
    const CheckpointDirectory directory = open_directory();
    Recorder recorder(pipe_[1], &directory);
    recorder.checkpoint({.last = "one", .best = {}});
    recorder.drain();
    recorder.checkpoint(
        {.last = FileBytes([]() -> std::string { throw std::bad_alloc(); }), .best = {}});
    recorder.drain();
    const auto error = recorder.take_checkpoint_error();
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, Code::kResourceExhausted);
    EXPECT_EQ(read_file(directory.last()).value(), "one") << "what was there stays";
    EXPECT_FALSE(std::filesystem::exists(directory.previous()));
}

/// Else a reader that is killed takes lines along that the checkpoint would not give again.
TEST_F(RecorderTest, ACheckpointWaitsUntilItsLinesWereRead) {
    const CheckpointDirectory directory = open_directory();
    Recorder recorder(pipe_[1], &directory);
    recorder.line("a\n");
    std::string seen(2, ' ');
    pollfd ready{.fd = pipe_[0], .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&ready, 1, 60'000), 1);
    recorder.checkpoint({.last = "one", .best = {}});
    usleep(kReaderWait_ms * 1000 / 4);
    EXPECT_FALSE(std::filesystem::exists(directory.last()));
    ASSERT_EQ(read(pipe_[0], seen.data(), seen.size()), 2);
    recorder.drain();
    EXPECT_EQ(read_file(directory.last()).value(), "one");
}

TEST_F(RecorderTest, AReaderThatReadsNothingIsNotWaitedForForEver) {
    const CheckpointDirectory directory = open_directory();
    Recorder recorder(pipe_[1], &directory);
    recorder.line("a\n");
    recorder.checkpoint({.last = "one", .best = {}});
    recorder.drain();
    EXPECT_EQ(read_file(directory.last()).value(), "one");
}

TEST_F(RecorderTest, NoticesThatTheReaderIsGone) {
    Recorder recorder(pipe_[1], nullptr);
    recorder.line("a\n");
    recorder.drain();
    EXPECT_FALSE(recorder.reader_gone());
    close_reader();
    recorder.line("b\n");
    recorder.drain();
    EXPECT_TRUE(recorder.reader_gone());
    recorder.line("c\n");
    recorder.drain();
}

TEST_F(RecorderTest, ReportsACheckpointThatCannotBeWrittenOnce) {
    const CheckpointDirectory directory = open_directory();
    std::filesystem::remove_all(directory_);
    Recorder recorder(pipe_[1], &directory);
    recorder.checkpoint({.last = "one", .best = {}});
    recorder.drain();
    const auto error = recorder.take_checkpoint_error();
    ASSERT_TRUE(error);
    EXPECT_NE(error->message.find(directory_.string()), std::string::npos) << error->message;
    EXPECT_FALSE(recorder.take_checkpoint_error());
}

/// `last` knows the best score, so it must not be newer than the file of the best.
TEST_F(RecorderTest, LastDoesNotLandWithoutItsBest) {
    const CheckpointDirectory directory = open_directory();
    std::filesystem::create_directory(directory.best());  // cannot be replaced by a file
    Recorder recorder(pipe_[1], &directory);
    recorder.checkpoint({.last = "one", .best = "best"});
    recorder.drain();
    EXPECT_TRUE(recorder.take_checkpoint_error());
    EXPECT_FALSE(std::filesystem::exists(directory.last()));
}

TEST_F(RecorderTest, DirectoryBelongsToOneProcessAtATime) {
    {
        const CheckpointDirectory first = open_directory();
        const auto second = CheckpointDirectory::open(directory_);
        ASSERT_FALSE(second);
        EXPECT_EQ(second.error().code, Code::kResourceConflict);
        EXPECT_NE(second.error().message.find("another process is training in it"),
                  std::string::npos);
    }
    EXPECT_TRUE(CheckpointDirectory::open(directory_));
}

TEST_F(RecorderTest, DirectoryIsClearedOfHalfWrittenFiles) {
    std::filesystem::create_directories(directory_);
    for (const char* name : {".last.safetensors.ab12", ".best.safetensors.cd34", "mine", ".hidden"})
        std::ofstream(directory_ / name) << "x";
    const CheckpointDirectory directory = open_directory();
    EXPECT_FALSE(std::filesystem::exists(directory_ / ".last.safetensors.ab12"));
    EXPECT_FALSE(std::filesystem::exists(directory_ / ".best.safetensors.cd34"));
    EXPECT_TRUE(std::filesystem::exists(directory_ / "mine"));
    EXPECT_TRUE(std::filesystem::exists(directory_ / ".hidden"));
}

TEST_F(RecorderTest, SeveralBestAreFilesOfTheirOwn) {
    const CheckpointDirectory directory = open_directory();
    const auto save = [&](std::int64_t epoch, std::int64_t best, std::vector<std::int64_t> kept) {
        Recorder recorder(pipe_[1], &directory);
        recorder.checkpoint({.last = "last " + std::to_string(epoch),
                             .best = {},
                             .added = {{epoch, "epoch " + std::to_string(epoch)}},
                             .best_epoch = best,
                             .kept = std::move(kept)});
        recorder.drain();
        EXPECT_FALSE(recorder.take_checkpoint_error());
    };
    save(1, 1, {1});
    save(2, 2, {2, 1});
    save(3, 0, {2, 3});
    EXPECT_EQ(*read_file(directory.best()), "epoch 2");
    EXPECT_EQ(*read_file(directory.best_of(3)), "epoch 3");
    EXPECT_EQ(*read_file(directory.last()), "last 3");
    EXPECT_FALSE(std::filesystem::exists(directory.best_of(1)));
    // One that is not among the best any more when its turn comes is not written.
    save(4, 0, {2, 3});
    EXPECT_FALSE(std::filesystem::exists(directory.best_of(4)));
}

TEST_F(RecorderTest, BestOnesOfACheckpointThatWasReplacedAreWrittenToo) {
    const CheckpointDirectory directory = open_directory();
    Recorder recorder(pipe_[1], &directory);
    for (std::int64_t epoch = 1; epoch <= 200; ++epoch) {
        std::vector<std::int64_t> kept;
        for (std::int64_t each = epoch; each > 0 && each > epoch - 5; --each) kept.push_back(each);
        recorder.checkpoint({.last = "last",
                             .best = {},
                             .added = {{epoch, "epoch " + std::to_string(epoch)}},
                             .best_epoch = epoch % 3 == 0 ? epoch : 0,
                             .kept = std::move(kept)});
    }
    recorder.drain();
    EXPECT_FALSE(recorder.take_checkpoint_error());
    for (std::int64_t epoch = 196; epoch <= 200; ++epoch)
        EXPECT_EQ(*read_file(directory.best_of(epoch)), "epoch " + std::to_string(epoch));
    EXPECT_EQ(*read_file(directory.best()), "epoch 198");
}

TEST_F(RecorderTest, DirectoryThatCannotBeMadeIsNamed) {
    std::ofstream(directory_) << "a file in its place";
    const auto opened = CheckpointDirectory::open(directory_ / "sub");
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().message.find(directory_.string()), std::string::npos);
}

TEST(ArtifactLine, NamesTheFile) {
    EXPECT_EQ(artifact_line("/a/profile/trace_1_3.json"),
              "tune: {\"artifact\":\"/a/profile/trace_1_3.json\"}\n");
}

TEST(MetricLine, IsOneJsonObject) {
    const double infinity = std::numeric_limits<double>::infinity();
    const NamedValue values[] = {{"val_loss", 0.1},
                                 {"a", std::numeric_limits<double>::quiet_NaN()},
                                 {"b", infinity},
                                 {"c", -infinity},
                                 {"d", 3.0}};
    EXPECT_EQ(metric_line(values, 4),
              "tune: {\"val_loss\":0.1,\"a\":\"NaN\",\"b\":\"Infinity\",\"c\":\"-Infinity\","
              "\"d\":3.0,\"step\":4}\n");
}

}  // namespace
}  // namespace tune::train
