// Batches made by stream, as mosaicml-streaming 0.13.0 gives them. tests/contract/loader compares
// random set-ups with the live package.

#include "loader/order/batching.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace tune::loader {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

using Ids = std::vector<std::int64_t>;

/// Streams of 15 samples in shards of 6, 4, 5 and of 8, 7, read by two ranks in batches of two.
struct TwoStreams {
    BatchingMethod batching = BatchingMethod::kStratified;
    std::vector<StreamWeight> weights = {{}, {}};
    std::int64_t epoch_size = 0;
    std::int64_t epoch = 0;
    std::int64_t drop_first = 0;
    std::int64_t batch = 2;
    std::int64_t nodes = 1;
    std::int64_t canonical_nodes = 1;

    [[nodiscard]] Result<Ids> rank(std::int64_t rank_of_node) const {
        std::vector<Stream> streams = {{{6, 4, 5}, 0, 0}, {{8, 7}, 0, 0}};
        TUNE_TRY(shares, stream_shares({15, 15}, weights, epoch_size, 9176));
        for (std::size_t s = 0; s < streams.size(); ++s) {
            streams[s].choose = shares[s].choose;
            streams[s].proportion = shares[s].proportion;
        }
        EpochOptions options;
        options.batching = batching;
        options.sampling.epoch = epoch;
        options.sampling.shuffle = true;
        options.shuffle = ShuffleOptions{ShuffleAlgo::kPy1e, 9176, epoch, canonical_nodes, 10};
        options.partition = {shares[0].choose + shares[1].choose,
                             canonical_nodes,
                             nodes,
                             2 / nodes,
                             batch,
                             drop_first};
        options.node = nodes == 1 ? 0 : rank_of_node;
        options.rank_of_node = nodes == 1 ? rank_of_node : 0;
        return rank_samples(streams, options);
    }
};

/// The first rank's ids and the second one's.
struct Ranks {
    Ids first;
    Ids second;
};

Ranks read(const TwoStreams& streams) {
    Ranks ranks{streams.rank(0).value(), streams.rank(1).value()};
    for (Ids* ids : {&ranks.first, &ranks.second}) std::erase(*ids, -1);
    return ranks;
}

TEST(Batching, StratifiedBatchesHoldFixedParts) {
    const Ranks ranks = read({.weights = {{0.75, {}, {}}, {0.25, {}, {}}}, .epoch_size = 24});
    EXPECT_THAT(ranks.first, ElementsAre(2, 1, 3, 5, 5, 4, 6, 8, 6, 12, 10, 13));
    EXPECT_THAT(ranks.second, ElementsAre(0, 20, 4, 19, 9, 16, 7, 21, 11, 29, 14, 28));
}

TEST(Batching, WhatRoundingLeavesGoesToTheStreamThatLacksMost) {
    const Ranks ranks = read({.weights = {{0.6, {}, {}}, {0.4, {}, {}}}, .epoch_size = 30});
    EXPECT_THAT(ranks.first, ElementsAre(2, 1, 0, 3, 5, 4, 5, 4, 6, 8, 9, 7));
    EXPECT_THAT(ranks.second, ElementsAre(16, 18, 20, 19, 15, 25, 28, 23, 26, 29, 24, 27));
}

TEST(Batching, ResumesAfterWholeGlobalBatches) {
    for (const BatchingMethod method : {BatchingMethod::kStratified, BatchingMethod::kPerStream,
                                        BatchingMethod::kDevicePerStream}) {
        const Ranks whole = read({.batching = method, .epoch = 1});
        const Ranks rest = read({.batching = method, .epoch = 1, .drop_first = 9});
        EXPECT_THAT(rest.first, ElementsAreArray(whole.first.begin() + 4, whole.first.end()));
        EXPECT_THAT(rest.second, ElementsAreArray(whole.second.begin() + 4, whole.second.end()));
    }
}

TEST(Batching, PerStreamBatchesAreOfOneStream) {
    const Ranks ranks = read({.batching = BatchingMethod::kPerStream});
    EXPECT_THAT(ranks.first,
                ElementsAre(2, 4, 3, 9, 17, 20, 19, 15, 25, 23, 8, 12, 10, 14, 27, 29));
    EXPECT_THAT(ranks.second,
                ElementsAre(1, 5, 0, 7, 16, 21, 18, 22, 28, 26, 6, 11, 13, 13, 24, 24));
    EXPECT_THAT(read({.batching = BatchingMethod::kPerStream, .epoch = 1}).first,
                ElementsAre(22, 19, 6, 8, 21, 16, 2, 3, 29, 27, 5, 11, 23, 24, 14, 10));
}

TEST(Batching, DevicePerStreamGivesEachRankBatchesOfOneStream) {
    const Ranks ranks = read({.batching = BatchingMethod::kDevicePerStream});
    EXPECT_THAT(ranks.first, ElementsAre(2, 1, 3, 0, 9, 7, 19, 18, 25, 28, 8, 6, 29, 24, 10, 13));
    EXPECT_THAT(ranks.second,
                ElementsAre(4, 5, 17, 16, 20, 21, 15, 22, 23, 26, 27, 24, 12, 11, 14, 13));
}

TEST(Batching, RefusesStreamsThatAreTooSmall) {
    const auto fault = [](const TwoStreams& streams) {
        const Result<Ids> ids = streams.rank(0);
        return ids ? std::string("no error") : ids.error().text();
    };
    const std::vector<StreamWeight> uneven = {{0.95, {}, {}}, {0.05, {}, {}}};
    EXPECT_THAT(fault({.weights = uneven, .batch = 1}), HasSubstr("stream 1 is too small a part"));
    EXPECT_THAT(fault({.batching = BatchingMethod::kPerStream, .batch = 16}),
                HasSubstr("stream 0 has not the 32 samples of one batch"));
    EXPECT_THAT(fault({.batching = BatchingMethod::kDevicePerStream, .nodes = 2}),
                HasSubstr("1 and 2 do not"));
    EXPECT_THAT(
        fault({.batching = BatchingMethod::kPerStream, .weights = {{1.0, {}, {}}, {0.0, {}, {}}}}),
        HasSubstr("an epoch takes no sample of stream 1"));
}

TEST(Batching, NamesAreMosaics) {
    for (const char* name : {"random", "stratified", "per_stream", "device_per_stream"})
        EXPECT_EQ(batching_method_name(batching_method_from_name(name).value()), name);
    EXPECT_FALSE(batching_method_from_name("by_stream").has_value());
}

}  // namespace
}  // namespace tune::loader
