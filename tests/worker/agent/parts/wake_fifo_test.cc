#include "worker/agent/output/wake_fifo.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "tests/worker/agent/scratch.h"

namespace tune::worker {
namespace {

class WakeFifoTest : public testing::Test {
protected:
    void SetUp() override { ASSERT_TRUE(fifo_.open(*loop_)); }

    /// As supervisors do, and what the loop then hears.
    void announce(const std::vector<std::uint64_t>& serials) {
        const UniqueFd fifo(open((scratch_.path() / "wake").c_str(), O_WRONLY | O_NONBLOCK));
        for (const std::uint64_t serial : serials)
            ASSERT_EQ(write(fifo.get(), &serial, sizeof serial), ssize_t{sizeof serial});
        loop_->run();
    }

    Scratch scratch_;
    std::unique_ptr<Loop> loop_ = Loop::create().value();
    std::vector<std::uint64_t> woken_;
    int overflows_ = 0;
    WakeFifo fifo_{scratch_.path() / "wake",
                   {.woken =
                        [this](std::span<const std::uint64_t> serials) {
                            woken_.assign(serials.begin(), serials.end());
                            loop_->quit();
                        },
                    .overflowed =
                        [this] {
                            ++overflows_;
                            loop_->quit();
                        }}};
};

TEST_F(WakeFifoTest, NamesEachOnce) {
    announce({9, 4, 9, 9});
    EXPECT_EQ(woken_, (std::vector<std::uint64_t>{4, 9}));
    EXPECT_EQ(overflows_, 0);
}

TEST_F(WakeFifoTest, SaysWhenAnnouncementsMayBeLost) {
    announce(std::vector<std::uint64_t>(6'000, 1));
    EXPECT_EQ(overflows_, 1);
    EXPECT_TRUE(woken_.empty());
}

TEST(WakeFifo, SaysWhereItCannotBe) {
    const std::unique_ptr<Loop> loop = Loop::create().value();
    WakeFifo fifo("/no/such/folder/wake", {});
    const Result<void> opened = fifo.open(*loop);
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().message.find("/no/such/folder/wake"), std::string::npos);
}

}  // namespace
}  // namespace tune::worker
