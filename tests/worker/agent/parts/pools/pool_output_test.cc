#include "worker/agent/pools/pool_output.h"

#include <gtest/gtest.h>

#include "tests/worker/agent/scratch.h"

namespace tune::worker {
namespace {

class PoolOutputTest : public testing::Test {
protected:
    std::unique_ptr<PoolOutput> open() {
        return std::make_unique<PoolOutput>(
            AttemptFiles(folder_.path()),
            PoolOutputEvents{.line =
                                 [this](std::string_view line, std::int64_t read_ms) {
                                     lines_ +=
                                         std::string(line) + "@" + std::to_string(read_ms) + " ";
                                 },
                             .lost = [this] { lines_ += "LOST "; }});
    }
    void print(std::string_view text) { folder_.append(kStdoutFile, text); }
    std::string lines() { return std::exchange(lines_, {}); }

    Scratch folder_;
    std::string lines_;
};

TEST_F(PoolOutputTest, PutsLinesTogether) {
    const auto output = open();
    EXPECT_FALSE(output->read(1)) << "there is no file yet";
    print("one\ntw");
    EXPECT_TRUE(output->read(2));
    EXPECT_FALSE(output->read(3));
    EXPECT_EQ(lines(), "one@2 ");
    print("o\n");
    EXPECT_TRUE(output->read(4));
    EXPECT_EQ(lines(), "two@4 ");
}

TEST_F(PoolOutputTest, TheNextAgentReadsTheSameUnderTheSameTimes) {
    {
        const auto output = open();
        print("one\n");
        EXPECT_TRUE(output->read(10));
        print("two\nthr");
        EXPECT_TRUE(output->read(20));
        output->note_settled("run/1");
    }
    EXPECT_EQ(lines(), "one@10 two@20 ");
    print("ee\n");
    const auto output = open();
    EXPECT_EQ(output->resume(), std::set<std::string>{"run/1"});
    while (output->read(99)) {
    }
    EXPECT_EQ(lines(), "one@10 two@20 three@99 ");
}

TEST_F(PoolOutputTest, AHoleIsAnnouncedBeforeTheLinesThatFollowIt) {
    print(std::string_view("\0\0\0\nnext\n", 9));
    const auto output = open();
    EXPECT_TRUE(output->read(1));
    EXPECT_TRUE(lines_.starts_with("LOST ")) << lines_;
    EXPECT_TRUE(lines_.ends_with("next@1 ")) << lines_;
}

}  // namespace
}  // namespace tune::worker
