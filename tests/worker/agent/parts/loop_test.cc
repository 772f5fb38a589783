#include "worker/agent/loop.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <thread>

namespace tune::worker {
namespace {

TEST(Loop, RunsTimersInOrderOfTheirTimes) {
    const std::unique_ptr<Loop> loop = Loop::create().value();
    std::string order;
    const std::int64_t now = loop->now_ms();
    loop->at(now + 20, [&] {
        order += "c";
        loop->quit();
    });
    loop->at(now, [&] { order += "a"; });
    loop->at(now + 10, [&] { order += "b"; });
    loop->cancel(loop->at(now + 5, [&] { order += "x"; }));
    loop->cancel(Loop::kNoTimer);
    loop->run();
    EXPECT_EQ(order, "abc");
}

TEST(Loop, RunsWhatOtherThreadsPostInOrder) {
    const std::unique_ptr<Loop> loop = Loop::create().value();
    std::vector<int> got;
    std::thread poster([&] {
        for (int i = 0; i < 1000; ++i) loop->post([&, i] { got.push_back(i); });
        loop->quit();
    });
    loop->run();
    poster.join();
    ASSERT_LE(got.size(), 1000u);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], static_cast<int>(i));
}

TEST(Loop, AWatchMayEndItself) {
    const std::unique_ptr<Loop> loop = Loop::create().value();
    const UniqueFd event(eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC));
    int calls = 0;
    ASSERT_TRUE(loop->watch(event.get(), [&] {
        ++calls;
        loop->unwatch(event.get());
        loop->at(loop->now_ms() + 5, [&] { loop->quit(); });
    }));
    loop->run();
    EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace tune::worker
