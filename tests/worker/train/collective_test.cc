#include "worker/train/collective/collective.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <thread>

namespace tune::train {
namespace {

std::uint16_t free_port() {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
    close(fd);
    return ntohs(address.sin_port);
}

/// Runs `body` as each of `size` ranks, which are threads here.
void on_ranks(std::int64_t size, const std::function<void(Collective&)>& body) {
    const std::uint16_t port = free_port();
    std::vector<std::jthread> threads;
    for (std::int64_t rank = 0; rank < size; ++rank)
        threads.emplace_back([&, rank] {
            auto group = meet(Ranks{.rank = rank,
                                    .size = size,
                                    .local_rank = rank,
                                    .master_host = "127.0.0.1",
                                    .master_port = port,
                                    .store_prefix = "test"},
                              {.timeout = std::chrono::seconds(30)});
            ASSERT_TRUE(group) << group.error().text();
            body(**group);
            EXPECT_TRUE((*group)->barrier());
        });
}

TEST(Collective, AloneIsImmediate) {
    const auto group = alone();
    double value = 3.0;
    ASSERT_TRUE(group->sum({&value, 1}));
    EXPECT_EQ(value, 3.0);
    EXPECT_TRUE(*group->any(true));
    EXPECT_FALSE(*group->any(false));
    EXPECT_EQ(group->agree(Error{Code::kDataLoss, "x"}).error().message, "x");
    EXPECT_EQ(*group->from_first([] { return Result<std::string>("a"); }), "a");
}

TEST(Collective, GathersSumsAndBroadcasts) {
    on_ranks(3, [](Collective& group) {
        const auto rank = static_cast<double>(group.rank());
        const double values[] = {rank, -rank};
        const auto all = group.gather(values);
        ASSERT_TRUE(all) << all.error().text();
        EXPECT_EQ(*all, (std::vector<std::vector<double>>{{0, 0}, {1, -1}, {2, -2}}));
        double sums[] = {rank, 1.0};
        ASSERT_TRUE(group.sum(sums));
        EXPECT_EQ(sums[0], 3.0);
        EXPECT_EQ(sums[1], 3.0);
        std::string text = "of rank " + std::to_string(group.rank());
        ASSERT_TRUE(group.broadcast(text, 1));
        EXPECT_EQ(text, "of rank 1");
        ASSERT_TRUE(group.broadcast(text = std::string(group.is_first() ? 0 : 5, 'x'), 0));
        EXPECT_EQ(text, "");
        EXPECT_TRUE(*group.any(group.rank() == 2));
        EXPECT_FALSE(*group.any(false));
    });
}

TEST(Collective, SumsOnTheirWayDoNotHinderOthers) {
    on_ranks(3, [](Collective& group) {
        const auto rank = static_cast<double>(group.rank());
        const double first[] = {rank, 0.5};
        auto pending = group.start_sum(first);
        ASSERT_TRUE(pending) << pending.error().text();
        double now[] = {2.0 * rank};
        ASSERT_TRUE(group.sum(now));
        EXPECT_EQ(now[0], 6.0);
        auto later = group.start_sum({now, 1});
        ASSERT_TRUE(later);
        EXPECT_EQ((*pending)->wait().value(), (std::vector<double>{3.0, 1.5}));
        EXPECT_EQ((*later)->wait().value(), std::vector<double>{18.0});
        // One that nobody asks for is waited for: the others write into its memory.
        EXPECT_TRUE(group.start_sum(first));
    });
}

TEST(Collective, OneErrorEndsAll) {
    on_ranks(3, [](Collective& group) {
        const Result<void> own = group.rank() == 1
                                     ? Result<void>(Error{Code::kDataLoss, "the disk is gone"})
                                     : Result<void>();
        const auto agreed = group.agree(own);
        ASSERT_FALSE(agreed);
        EXPECT_EQ(agreed.error().code, Code::kDataLoss);
        EXPECT_EQ(agreed.error().message,
                  group.rank() == 1 ? "the disk is gone" : "rank 1: the disk is gone");
        EXPECT_TRUE(group.agree({}));
        int calls = 0;
        const auto text = group.from_first([&]() -> Result<std::string> {
            ++calls;
            return std::string("read once");
        });
        EXPECT_EQ(text.value(), "read once");
        EXPECT_EQ(calls, group.is_first() ? 1 : 0);
    });
}

TEST(Collective, ARankThatLeavesIsAnError) {
    const std::uint16_t port = free_port();
    std::jthread leaver([&] {
        auto group = meet({.rank = 0,
                           .size = 2,
                           .master_host = "127.0.0.1",
                           .master_port = port,
                           .store_prefix = "test"},
                          {.timeout = std::chrono::seconds(20)});
        EXPECT_TRUE(group);
    });
    auto group = meet({.rank = 1,
                       .size = 2,
                       .master_host = "127.0.0.1",
                       .master_port = port,
                       .store_prefix = "test"},
                      {.timeout = std::chrono::seconds(20)});
    ASSERT_TRUE(group) << group.error().text();
    leaver.join();
    const auto value = (*group)->any(true);
    ASSERT_FALSE(value);
    EXPECT_EQ(value.error().code, Code::kTemporarilyUnavailable);
    EXPECT_NE(value.error().message.find("another rank is gone or stuck"), std::string::npos);
}

}  // namespace
}  // namespace tune::train
