#include "worker/agent/pools/pool_input.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace tune::worker {
namespace {

class PoolInputTest : public testing::Test {
protected:
    /// What the program finds; "END" at the end of its input.
    std::string read_some(std::size_t bytes_max = 4096) {
        std::string text(bytes_max, '\0');
        const ssize_t count = read(program_.get(), text.data(), text.size());
        if (count == 0) return "END";
        text.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
        return text;
    }

    std::unique_ptr<Loop> loop_ = Loop::create().value();
    PoolInput input_{*loop_};
    UniqueFd program_ = input_.open().value();
};

TEST_F(PoolInputTest, KeepsLinesUntilItIsReleased) {
    input_.hold();
    input_.send("one\n");
    input_.send("two\n");
    input_.release();
    EXPECT_EQ(read_some(), "one\ntwo\n");
}

TEST_F(PoolInputTest, EndsAfterTheLastLine) {
    input_.send("one\n");
    input_.finish();
    input_.send("last\n");
    EXPECT_EQ(read_some(), "one\nlast\n");
    EXPECT_EQ(read_some(), "END");
}

TEST_F(PoolInputTest, OffersAgainWhatDidNotFit) {
    const std::string much(3u << 20, 'x');
    input_.send(much + "\n");
    input_.send("then\n");
    std::string seen;
    const std::size_t all = much.size() + 6;
    std::function<void()> look = [&] {
        seen += read_some(1u << 20);
        if (seen.size() >= all) return loop_->quit();
        loop_->at(loop_->now_ms() + 11, look);  // after the input's own turn
    };
    look();
    loop_->run();
    EXPECT_TRUE(seen.ends_with("x\nthen\n"));
    EXPECT_EQ(seen.size(), all);
}

TEST_F(PoolInputTest, AProgramThatIsGoneIsNoError) {
    program_.reset();
    input_.send("one\n");  // SIGPIPE would end the test
    input_.send("two\n");
}

}  // namespace
}  // namespace tune::worker
