#include "base/histogram.h"

#include <gtest/gtest.h>

#include <thread>

namespace tune {
namespace {

constexpr std::array<double, 3> kBounds = {1, 2, 4};

TEST(Histogram, BoundsBelongToTheirBucket) {
    Histogram histogram(kBounds);
    for (const double value : {0.0, 1.0, 1.5, 2.0, 4.0, 4.5, 1e9}) histogram.observe(value);
    const HistogramCounts counts = histogram.counts();
    EXPECT_EQ(counts.buckets, (std::vector<std::uint64_t>{2, 2, 1, 2}));
    EXPECT_EQ(counts.count(), 7u);
    EXPECT_DOUBLE_EQ(counts.sum, 1e9 + 13);
}

TEST(Histogram, SumsOfSeveralAddUp) {
    Histogram first(kBounds);
    Histogram second(kBounds);
    first.observe(1);
    second.observe(3);
    HistogramCounts sum;
    sum.add(first.counts());
    sum.add(second.counts());
    EXPECT_EQ(sum.buckets, (std::vector<std::uint64_t>{1, 0, 1, 0}));
    EXPECT_DOUBLE_EQ(sum.sum, 4);
}

TEST(Histogram, LosesNothingBetweenThreads) {
    Histogram histogram(kBounds);
    constexpr int kEach = 20'000;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&histogram] {
            for (int n = 0; n < kEach; ++n) histogram.observe(2);
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(histogram.counts().count(), 4u * kEach);
    EXPECT_DOUBLE_EQ(histogram.counts().sum, 8.0 * kEach);
}

}  // namespace
}  // namespace tune
