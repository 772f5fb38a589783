// Golden partitions of mosaicml-streaming 0.13.0.

#include "loader/order/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/loader/digest.h"

namespace tune::loader {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Ids = std::vector<std::int64_t>;

Ids rank_ids(const PartitionOptions& options, std::int64_t node, std::int64_t rank) {
    const Partition partition = Partition::make(options).value();
    Ids ids;
    for (std::int64_t k = 0; k < partition.samples_per_rank(); ++k)
        ids.push_back(partition.at(node, rank, k));
    EXPECT_EQ(partition.positions(node, rank), ids);
    return ids;
}

/// Upstream's tensor [nodes, ranks, workers, batches, batch], flattened.
Ids tensor(const PartitionOptions& options, std::int64_t workers) {
    const Partition partition = Partition::make(options).value();
    const std::int64_t row = workers * options.batch_size;
    const std::int64_t batches = (partition.samples_per_rank() + row - 1) / row;
    Ids ids;
    for (std::int64_t node = 0; node < options.physical_nodes; ++node)
        for (std::int64_t rank = 0; rank < options.ranks_per_node; ++rank)
            for (std::int64_t worker = 0; worker < workers; ++worker)
                for (std::int64_t batch = 0; batch < batches; ++batch)
                    for (std::int64_t slot = 0; slot < options.batch_size; ++slot)
                        ids.push_back(partition.at(
                            node, rank, (batch * workers + worker) * options.batch_size + slot));
    return ids;
}

PartitionOptions options_of(std::int64_t samples, std::int64_t canonical, std::int64_t nodes,
                            std::int64_t ranks, std::int64_t batch, std::int64_t drop_first = 0) {
    return {samples, canonical, nodes, ranks, batch, drop_first, 0};
}

TEST(Partition, DealsCanonicalNodesInTurn) {
    const PartitionOptions options = options_of(23, 2, 1, 2, 3);
    EXPECT_THAT(rank_ids(options, 0, 0), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10));
    EXPECT_THAT(rank_ids(options, 0, 1),
                ElementsAre(11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22));
}

TEST(Partition, SkipsWhatWasConsumed) {
    const PartitionOptions options = options_of(23, 2, 1, 2, 3, 6);
    EXPECT_THAT(rank_ids(options, 0, 0), ElementsAre(3, 4, 5, 6, 7, 8, 9, 10, 10));
    EXPECT_THAT(rank_ids(options, 0, 1), ElementsAre(14, 15, 16, 17, 18, 19, 20, 21, 22));
}

TEST(Partition, SharesOneCanonicalNodeAmongMachines) {
    const PartitionOptions options = options_of(23, 1, 2, 2, 3);
    EXPECT_THAT(rank_ids(options, 0, 0), ElementsAre(0, 4, 8, 12, 16, 20));
    EXPECT_THAT(rank_ids(options, 0, 1), ElementsAre(2, 6, 10, 14, 18, 22));
    EXPECT_THAT(rank_ids(options, 1, 0), ElementsAre(1, 5, 9, 13, 17, 21));
    EXPECT_THAT(rank_ids(options, 1, 1), ElementsAre(3, 7, 11, 15, 19, 21));
}

TEST(Partition, EqualsMosaicsTensorOfAMillionSamples) {
    EXPECT_EQ(digest16(tensor(options_of(976412, 8, 2, 4, 16), 3)), "a893ce2a69ee67ba");
    EXPECT_EQ(digest16(tensor(options_of(976412, 8, 2, 4, 16, 128000), 3)), "9c02b1324eb02daa");
}

TEST(Partition, AllRanksGetEquallyManyAndEverySampleIsRead) {
    for (std::int64_t samples = 8; samples < 60; ++samples)
        for (const std::int64_t canonical : {1, 2, 4, 8})
            for (const std::int64_t nodes : {1, 2, 4})
                for (const std::int64_t ranks : {1, 2, 3}) {
                    const PartitionOptions options =
                        options_of(samples, canonical, nodes, ranks, 2);
                    std::set<std::int64_t> seen;
                    for (std::int64_t node = 0; node < nodes; ++node)
                        for (std::int64_t rank = 0; rank < ranks; ++rank)
                            for (const std::int64_t id : rank_ids(options, node, rank)) {
                                ASSERT_GE(id, 0);
                                ASSERT_LT(id, samples);
                                seen.insert(id);
                            }
                    EXPECT_EQ(seen.size(), static_cast<std::size_t>(samples))
                        << samples << " " << canonical << " " << nodes << " " << ranks;
                }
}

/// Elastic determinism: with one global batch size, each whole global batch holds the same samples
/// in any world.
TEST(Partition, WorldsAgreeOnEveryWholeGlobalBatch) {
    const auto batches = [](const PartitionOptions& options) {
        std::map<std::int64_t, std::multiset<std::int64_t>> sets;
        for (std::int64_t node = 0; node < options.physical_nodes; ++node)
            for (std::int64_t rank = 0; rank < options.ranks_per_node; ++rank) {
                const Ids ids = rank_ids(options, node, rank);
                for (std::size_t k = 0; k < ids.size(); ++k)
                    sets[static_cast<std::int64_t>(k) / options.batch_size].insert(ids[k]);
            }
        return sets;
    };
    const auto small = batches(options_of(1000, 4, 2, 4, 10, 240));
    const auto large = batches(options_of(1000, 4, 4, 4, 5, 240));
    ASSERT_EQ(small.size(), 10U);  // 760 samples in global batches of 80
    for (std::int64_t batch = 0; batch < 9; ++batch) EXPECT_EQ(small.at(batch), large.at(batch));
}

TEST(Partition, MoreNodesThanSamplesRepeatsThem) {
    const Ids ids = rank_ids(options_of(3, 8, 1, 1, 4), 0, 0);
    EXPECT_THAT(ids, ElementsAre(0, 1, 2, 0, 1, 2, 0, 1));
}

TEST(Partition, AStateAtTheEndLeavesNothing) {
    for (const std::int64_t consumed : {40, 41, 42})
        EXPECT_EQ(Partition::make(options_of(40, 2, 1, 2, 3, consumed)).value().samples_per_rank(),
                  0)
            << consumed;
    const auto beyond = Partition::make(options_of(40, 2, 1, 2, 3, 43));
    ASSERT_FALSE(beyond.has_value());
    EXPECT_THAT(beyond.error().message, HasSubstr("the epoch has only 40 samples"));
}

TEST(Partition, AnOddRestGivesBothRanksTheSameSample) {
    const PartitionOptions options = options_of(40, 1, 1, 2, 3, 39);
    EXPECT_THAT(rank_ids(options, 0, 0), ElementsAre(39));
    EXPECT_THAT(rank_ids(options, 0, 1), ElementsAre(39));
}

TEST(Partition, RecutsGlobalBatchesForAnUnrelatedNumberOfMachines) {
    // Begun on two machines with batches of 6, resumed on three with batches of 4.
    const PartitionOptions options{40, 2, 3, 1, 4, 12, 2};
    EXPECT_THAT(rank_ids(options, 0, 0), ElementsAre(6, 7, 8, 9, 12, 13, 14, 15, 18, 19, -1, -1));
    EXPECT_THAT(rank_ids(options, 1, 0),
                ElementsAre(10, 11, 26, 27, 16, 17, 32, 33, -1, -1, 38, 39));
}

TEST(Partition, RefusesWorldsThatDoNotFit) {
    const auto message = [](const PartitionOptions& options) {
        const auto partition = Partition::make(options);
        return partition ? std::string("no error") : partition.error().message;
    };
    EXPECT_THAT(message(options_of(40, 2, 3, 1, 4)),
                HasSubstr("one of the two numbers must divide"));
    EXPECT_THAT(message({40, 2, 3, 1, 5, 0, 2}), HasSubstr("global batch of 15 samples"));
    EXPECT_THAT(message(options_of(0, 1, 1, 1, 1)), HasSubstr("no samples"));
    EXPECT_THAT(message(options_of(10, 1, 1, 0, 1)), HasSubstr("must be positive"));
    EXPECT_THAT(message(options_of(10, std::int64_t{1} << 40, 1, 1, 1)), HasSubstr("than can be"));
}

}  // namespace
}  // namespace tune::loader
