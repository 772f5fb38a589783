#include "loader/order/lazy_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

namespace tune::loader {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;

using Ids = std::vector<std::int64_t>;

Ids whole_order(const LazyOrderOptions& options) {
    const LazyOrder order = LazyOrder::make(options).value();
    Ids ids;
    for (std::int64_t position = 0; position < options.sample_count; ++position)
        ids.push_back(order.at(position));
    return ids;
}

Ids sorted(Ids ids) {
    std::sort(ids.begin(), ids.end());
    return ids;
}

TEST(LazyOrder, IsAPermutationForEverySize) {
    for (const std::int64_t count : {1, 2, 3, 5, 64, 100, 1023, 1024, 1025, 5000, 20'000}) {
        Ids expected(static_cast<std::size_t>(count));
        std::iota(expected.begin(), expected.end(), 0);
        for (const std::int64_t block : {1, 1024, 3000, 1 << 18})
            EXPECT_EQ(sorted(whole_order({.sample_count = count, .block_size = block})), expected)
                << count << " samples, blocks of " << block;
    }
}

TEST(LazyOrder, DiffersBySeedAndEpochAndIsTheSameOtherwise) {
    const LazyOrderOptions options{.sample_count = 5000, .block_size = 2048};
    LazyOrderOptions other_seed = options;
    other_seed.seed = 1;
    LazyOrderOptions other_epoch = options;
    other_epoch.epoch = 1;
    LazyOrderOptions in_order = options;
    in_order.shuffle = false;
    const Ids ids = whole_order(options);
    EXPECT_EQ(ids, whole_order(options));
    EXPECT_NE(ids, whole_order(other_seed));
    EXPECT_NE(ids, whole_order(other_epoch));
    const Ids plain = whole_order(in_order);
    EXPECT_TRUE(std::is_sorted(plain.begin(), plain.end()));
}

/// Where samples come to lie must not depend on where they lay: the mean distance between a
/// sample and its position is a third of the set for a uniform permutation.
TEST(LazyOrder, SpreadsSamplesOverTheWholeSet) {
    constexpr std::int64_t kCount = 1 << 20;
    const Ids ids = whole_order({.sample_count = kCount, .block_size = 1 << 15});
    double distance = 0;
    std::int64_t neighbours = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        distance += std::abs(static_cast<double>(ids[i]) - static_cast<double>(i)) / kCount;
        if (i > 0 && std::abs(ids[i] - ids[i - 1]) == 1) ++neighbours;
    }
    EXPECT_NEAR(distance / kCount, 1.0 / 3, 0.02);
    // 32,768 samples of a block in 32 runs: about 2 in 32,768 steps go to a neighbour by chance.
    EXPECT_LT(neighbours, 200);
}

TEST(LazyOrder, ABlockReadsFromFewRuns) {
    constexpr std::int64_t kBlock = 8 * LazyOrder::kRunSamples;
    const Ids ids = whole_order({.sample_count = 100 * kBlock, .block_size = kBlock});
    for (std::size_t begin = 0; begin < ids.size(); begin += kBlock) {
        std::set<std::int64_t> runs;
        for (std::size_t i = begin; i < begin + kBlock; ++i)
            runs.insert(ids[i] / LazyOrder::kRunSamples);
        EXPECT_LE(runs.size(), 2u * 8);  // a run may lie across a boundary
    }
}

TEST(LazyOrder, AnyPositionOfAHugeSetIsThereAtOnce) {
    constexpr std::int64_t kCount = std::int64_t{1} << 61;
    const LazyOrder order = LazyOrder::make({.sample_count = kCount}).value();
    std::set<std::int64_t> ids;
    for (std::int64_t i = 0; i < 10'000; ++i) {
        const std::int64_t id = order.at(kCount / 3 + i);
        ASSERT_GE(id, 0);
        ASSERT_LT(id, kCount);
        ids.insert(id);
    }
    EXPECT_EQ(ids.size(), 10'000u);
}

Ids rank_ids(const LazyOrder& order, LazyRank::Place place) {
    const LazyRank rank(order, place);
    Ids ids;
    for (std::int64_t i = 0; i < rank.sample_count(); ++i) ids.push_back(rank.at(i));
    return ids;
}

TEST(LazyRank, RanksShareGlobalBatchesAndTheTailEvenly) {
    const LazyOrder order = LazyOrder::make({.sample_count = 103}).value();
    const Ids all = whole_order({.sample_count = 103});
    std::vector<Ids> ranks;
    for (std::int64_t r = 0; r < 3; ++r)
        ranks.push_back(rank_ids(order, {.rank = r, .ranks = 3, .batch_size = 4}));
    // Eight global batches of twelve, then seven samples: three a rank, two of them repeats.
    Ids joined;
    for (std::size_t begin = 0; begin < 35; begin += 4)
        for (const Ids& ids : ranks)
            joined.insert(joined.end(), ids.begin() + static_cast<std::ptrdiff_t>(begin),
                          ids.begin() + static_cast<std::ptrdiff_t>(
                                            std::min<std::size_t>(begin + 4, ids.size())));
    ASSERT_EQ(joined.size(), 105u);
    EXPECT_TRUE(std::equal(all.begin(), all.end(), joined.begin()));
    EXPECT_EQ(joined[103], all[0]);
    EXPECT_EQ(joined[104], all[1]);
}

TEST(LazyRank, ResumesOnAnyWorld) {
    const LazyOrder order = LazyOrder::make({.sample_count = 1000}).value();
    const Ids all = whole_order({.sample_count = 1000});
    const Ids rest = rank_ids(order, {.rank = 0, .ranks = 1, .batch_size = 7, .drop_first = 317});
    EXPECT_THAT(rest, ElementsAreArray(all.begin() + 317, all.end()));
    const Ids second = rank_ids(order, {.rank = 1, .ranks = 2, .batch_size = 5, .drop_first = 317});
    EXPECT_EQ(second.front(), all[322]);
    EXPECT_TRUE(rank_ids(order, {.drop_first = 1000}).empty());
}

TEST(LazyRank, WorkersTakeBatchesInTurns) {
    const LazyOrder order = LazyOrder::make({.sample_count = 53}).value();
    const LazyRank rank(order, {.batch_size = 5});
    for (const std::int64_t workers : {1, 2, 3, 12}) {
        std::vector<LazyRank> parts;
        for (std::int64_t w = 0; w < workers; ++w) parts.push_back(rank.of_worker(w, workers));
        std::int64_t samples = 0;
        for (const LazyRank& part : parts) samples += part.sample_count();
        EXPECT_EQ(samples, 53);
        for (std::int64_t i = 0; i < 53; ++i) {
            const std::int64_t batch = i / 5;
            const LazyRank& part = parts[static_cast<std::size_t>(batch % workers)];
            EXPECT_EQ(part.at(batch / workers * 5 + i % 5), rank.at(i));
        }
    }
}

TEST(LazyOrder, RefusesWhatIsNoSet) {
    EXPECT_THAT(LazyOrder::make({.sample_count = 0}).error().text(), HasSubstr("1 to 2^62"));
    EXPECT_THAT(LazyOrder::make({.sample_count = 5, .block_size = 0}).error().text(),
                HasSubstr("must hold a sample"));
}

}  // namespace
}  // namespace tune::loader
