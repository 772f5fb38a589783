#include "base/system/late_wakes.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace tune {
namespace {

class CountingSleeper final : public Sleeper {
public:
    void wake() override { ++wakes; }
    std::atomic<int> wakes{0};
};

TEST(LateWakes, WithoutOneWakesAreAtOnce) {
    const auto sleeper = std::make_shared<CountingSleeper>();
    LateWakes::wake(sleeper);
    EXPECT_EQ(sleeper->wakes, 1);
}

TEST(LateWakes, WakeEachSleeperOnceInTheEnd) {
    const auto first = std::make_shared<CountingSleeper>();
    const auto second = std::make_shared<CountingSleeper>();
    {
        const LateWakes until_end;
        for (int i = 0; i < 5; ++i) {
            LateWakes::wake(first);
            LateWakes::wake(second);
        }
        EXPECT_EQ(first->wakes + second->wakes, 0);
    }
    EXPECT_EQ(first->wakes, 1);
    EXPECT_EQ(second->wakes, 1);
    LateWakes::wake(first);
    EXPECT_EQ(first->wakes, 2) << "it is over";
}

TEST(LateWakes, AnInnerOneLeavesItsWakesToTheOuterOne) {
    const auto sleeper = std::make_shared<CountingSleeper>();
    {
        const LateWakes outer;
        {
            const LateWakes inner;
            LateWakes::wake(sleeper);
        }
        EXPECT_EQ(sleeper->wakes, 0);
    }
    EXPECT_EQ(sleeper->wakes, 1);
}

TEST(LateWakes, AreOfTheirThreadAlone) {
    const auto sleeper = std::make_shared<CountingSleeper>();
    const LateWakes until_end;
    std::thread([&sleeper] { LateWakes::wake(sleeper); }).join();
    EXPECT_EQ(sleeper->wakes, 1);
}

TEST(LateWakes, KeepASleeperThatNobodyElseHolds) {
    std::weak_ptr<CountingSleeper> seen;
    {
        const LateWakes until_end;
        auto lone = std::make_shared<CountingSleeper>();
        seen = lone;
        LateWakes::wake(std::move(lone));
        EXPECT_FALSE(seen.expired());
    }
    EXPECT_TRUE(seen.expired());
}

}  // namespace
}  // namespace tune
