// Golden orders of mosaicml-streaming 0.13.0 (numpy 2.1.3).

#include "loader/order/shuffle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "tests/loader/digest.h"

namespace tune::loader {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::int64_t> kSizes = {100, 37, 250, 1, 400, 64, 64, 77, 300, 107};

struct GridRow {
    ShuffleAlgo algo;
    std::array<const char*, 6> digests;  // canonical nodes 1, 2, 4, each with epoch 0 and 1
};

const GridRow kGrid[] = {
    {ShuffleAlgo::kPy1s,
     {"859d6610bde0d54f", "76123673acddcf1c", "d4e86c2542274059", "e13a0bede9e3b9a7",
      "35d89657cc1a7e38", "f23dab1762b54b0a"}},
    {ShuffleAlgo::kPy2s,
     {"d9ac26acc4c562ef", "de619f0b6bd6d62a", "d6b91998b78474ab", "8816ecbbe77c76da",
      "39bce215f10f40c1", "31029073e3d68b9b"}},
    {ShuffleAlgo::kPy1br,
     {"b2aeff67d0c3330c", "fa022600d9c943c2", "74b15261a2d5484b", "61f8e1f59a8a8450",
      "e33f499745ab115c", "8767c280782b0554"}},
    {ShuffleAlgo::kPy1e,
     {"c1633c3bb7c7f6f6", "8c6f69fab33c764b", "0218eb0c3f119577", "ae122a25dcab2dcc",
      "defa2317452695c8", "790ada90c9fe682c"}},
};

TEST(Shuffle, GivesTheOrdersOfMosaic) {
    for (const GridRow& row : kGrid)
        for (std::size_t i = 0; i < row.digests.size(); ++i) {
            const std::int64_t nodes = std::int64_t{1} << (i / 2);
            const std::int64_t epoch = static_cast<std::int64_t>(i % 2);
            const ShuffleOptions options{row.algo, 9176, epoch, nodes, 300};
            EXPECT_EQ(digest16(shuffle_samples(kSizes, options).value()), row.digests[i])
                << shuffle_algo_name(row.algo) << " nodes " << nodes << " epoch " << epoch;
        }
}

TEST(Shuffle, NaiveIsOnePermutation) {
    const auto digest = [](std::int64_t epoch) {
        return digest16(
            shuffle_samples(kSizes, {ShuffleAlgo::kNaive, 9176, epoch, 1, 300}).value());
    };
    EXPECT_EQ(digest(0), "775279723a902858");
    EXPECT_EQ(digest(1), "f23eded0eb5923b8");
}

TEST(Shuffle, Py1eBeginsAsMosaicDoes) {
    const auto ids = shuffle_samples(kSizes, {ShuffleAlgo::kPy1e, 9176, 0, 1, 300}).value();
    EXPECT_THAT(std::vector(ids.begin(), ids.begin() + 8),
                ElementsAre(24, 25, 122, 99, 106, 26, 10, 128));
}

TEST(Shuffle, GivesTheOrdersOfMosaicForAMillionSamples) {
    std::vector<std::int64_t> sizes;
    for (std::int64_t i = 0; i < 150; ++i) sizes.push_back(5000 + (i * 7919) % 3001);
    ASSERT_EQ(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}), 976412);
    const std::pair<ShuffleAlgo, const char*> expected[] = {
        {ShuffleAlgo::kNaive, "863586d7cb9e496d"}, {ShuffleAlgo::kPy1s, "e1c6b3b231c73d89"},
        {ShuffleAlgo::kPy2s, "a62a0584dc90d1d1"},  {ShuffleAlgo::kPy1br, "c14dcb798fc4d362"},
        {ShuffleAlgo::kPy1e, "865e738328b014e0"},
    };
    for (const auto& [algo, digest] : expected)
        EXPECT_EQ(digest16(shuffle_samples(sizes, {algo, 9176, 2, 8, 262144}).value()), digest)
            << shuffle_algo_name(algo);
}

/// Whatever the sizes: nothing lost, nothing twice. Spans larger than a block and single samples
/// are the unusual cases.
TEST(Shuffle, IsAPermutation) {
    const std::vector<std::vector<std::int64_t>> cases = {
        {1}, {1, 1, 1}, {5000}, {3, 5000, 1, 1, 700}, {7, 7, 7, 7, 7, 7}};
    for (const auto& sizes : cases)
        for (const ShuffleAlgo algo : {ShuffleAlgo::kNaive, ShuffleAlgo::kPy1s, ShuffleAlgo::kPy2s,
                                       ShuffleAlgo::kPy1br, ShuffleAlgo::kPy1e})
            for (const std::int64_t block : {2, 3, 100, 100000}) {
                const ShuffleOptions options{algo, 1, 5, 1, block};
                auto ids = shuffle_samples(sizes, options).value();
                std::sort(ids.begin(), ids.end());
                for (std::size_t i = 0; i < ids.size(); ++i)
                    ASSERT_EQ(ids[i], static_cast<std::int64_t>(i));
            }
}

TEST(Shuffle, SpreadsSamplesAsFarAsABlock) {
    const std::vector<std::int64_t> sizes(100, 50);
    const auto ids = shuffle_samples(sizes, {ShuffleAlgo::kPy1e, 3, 0, 1, 1000}).value();
    std::vector<std::int64_t> first(100, 5000);
    std::vector<std::int64_t> last(100, 0);
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const auto shard = static_cast<std::size_t>(ids[i] / 50);
        first[shard] = std::min(first[shard], static_cast<std::int64_t>(i));
        last[shard] = std::max(last[shard], static_cast<std::int64_t>(i));
    }
    for (std::size_t shard = 0; shard < 100; ++shard) EXPECT_LE(last[shard] - first[shard], 1250);
}

TEST(Shuffle, RefusesWhatCannotBeOrdered) {
    const auto message = [](const std::vector<std::int64_t>& sizes, const ShuffleOptions& options) {
        const auto ids = shuffle_samples(sizes, options);
        return ids ? std::string("no error") : ids.error().message;
    };
    EXPECT_THAT(message({5}, {ShuffleAlgo::kPy1e, 1, 0, 6, 300}), HasSubstr("at least one sample"));
    EXPECT_THAT(message({5, 0}, {}), HasSubstr("a shuffle unit has 0 samples"));
    EXPECT_THAT(message({5}, {ShuffleAlgo::kPy1s, 1, 0, 0, 300}), HasSubstr("canonical nodes"));
    EXPECT_THAT(message({5}, {ShuffleAlgo::kPy1br, 1, 0, 1, 1}), HasSubstr("block size"));
    EXPECT_THAT(message({5}, {ShuffleAlgo::kPy1s, 1, -1, 1, 300}), HasSubstr("epoch"));
    EXPECT_THAT(message({5}, {ShuffleAlgo::kPy1s, ~std::uint64_t{0}, 0, 1, 300}),
                HasSubstr("seed"));
}

TEST(Shuffle, NamesReadBack) {
    for (const char* name : {"naive", "py1s", "py2s", "py1br", "py1e"})
        EXPECT_EQ(shuffle_algo_name(shuffle_algo_from_name(name).value()), name);
    EXPECT_FALSE(shuffle_algo_from_name("py1b").has_value());
}

}  // namespace
}  // namespace tune::loader
