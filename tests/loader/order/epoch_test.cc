// Whole epochs as mosaicml-streaming 0.13.0 gives them: sampling, shuffle and partition together.

#include "loader/order/epoch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/loader/digest.h"

namespace tune::loader {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

using Ids = std::vector<std::int64_t>;

/// Forty samples in five shards, read by a run with two canonical nodes.
struct SmallRun {
    std::vector<std::int64_t> shards = {10, 3, 12, 7, 8};
    std::optional<ShuffleAlgo> algo = ShuffleAlgo::kPy1e;
    std::int64_t epoch = 0;
    std::int64_t block_size = 20;
    std::int64_t nodes = 1;
    std::int64_t ranks = 2;
    std::int64_t batch = 3;
    std::int64_t drop_first = 0;
    std::int64_t initial_nodes = 0;

    [[nodiscard]] Ids rank(std::int64_t node, std::int64_t rank_of_node) const {
        std::int64_t samples = 0;
        for (const std::int64_t shard : shards) samples += shard;
        EpochOptions options;
        options.sampling.epoch = epoch;
        options.sampling.shuffle = algo.has_value();
        if (algo) options.shuffle = ShuffleOptions{*algo, 9176, epoch, 2, block_size};
        options.partition = {samples, 2, nodes, ranks, batch, drop_first, initial_nodes};
        options.node = node;
        options.rank_of_node = rank_of_node;
        return rank_samples({{shards, samples}}, options).value();
    }

    /// Upstream's tensor [nodes, ranks, workers, batches, batch].
    [[nodiscard]] Ids tensor(std::int64_t workers) const {
        Ids all;
        for (std::int64_t node = 0; node < nodes; ++node)
            for (std::int64_t rank_of_node = 0; rank_of_node < ranks; ++rank_of_node) {
                Ids ids = rank(node, rank_of_node);
                const auto row = static_cast<std::size_t>(workers * batch);
                ids.resize((ids.size() + row - 1) / row * row, -1);
                for (std::int64_t worker = 0; worker < workers; ++worker)
                    for (std::size_t at = static_cast<std::size_t>(worker * batch); at < ids.size();
                         at += row)
                        all.insert(all.end(), ids.begin() + static_cast<std::ptrdiff_t>(at),
                                   ids.begin() + static_cast<std::ptrdiff_t>(at) + batch);
            }
        return all;
    }
};

TEST(Epoch, EqualsMosaicsForFiveAlgorithms) {
    const std::tuple<ShuffleAlgo, std::int64_t, const char*> expected[] = {
        {ShuffleAlgo::kPy1e, 0, "6d7765893b8d5cc9"},  {ShuffleAlgo::kPy1e, 1, "4bdacfc8f0169e81"},
        {ShuffleAlgo::kPy1br, 0, "68a1eb3dcb2184cf"}, {ShuffleAlgo::kPy1br, 1, "cc8f8efbdf91ece2"},
        {ShuffleAlgo::kPy1s, 0, "3b8052c8779cb22e"},  {ShuffleAlgo::kPy1s, 1, "5807951c634c0d88"},
        {ShuffleAlgo::kPy2s, 0, "289fabecfab642ef"},  {ShuffleAlgo::kPy2s, 1, "9fb8e9b130892bd9"},
        {ShuffleAlgo::kNaive, 0, "38589ab4075dfb5b"}, {ShuffleAlgo::kNaive, 1, "733a6ad0e54233a3"},
    };
    for (const auto& [algo, epoch, digest] : expected)
        EXPECT_EQ(digest16(SmallRun{.algo = algo, .epoch = epoch}.tensor(2)), digest)
            << shuffle_algo_name(algo) << " epoch " << epoch;
}

TEST(Epoch, RanksReadInTurn) {
    const SmallRun run;
    EXPECT_THAT(run.rank(0, 0), ElementsAre(2, 10, 11, 13, 0, 1, 3, 15, 4, 20, 19, 21, 18, 14, 12,
                                            23, 22, 24, 17, 16));
    EXPECT_THAT(run.rank(0, 1), ElementsAre(34, 30, 38, 36, 32, 33, 9, 37, 39, 27, 8, 35, 28, 31,
                                            25, 7, 5, 6, 29, 26));
}

TEST(Epoch, WithoutShuffleKeepsTheOrderOfTheShards) {
    const SmallRun run{.algo = std::nullopt};
    Ids first(20);
    Ids second(20);
    for (std::int64_t i = 0; i < 20; ++i) {
        first[static_cast<std::size_t>(i)] = i;
        second[static_cast<std::size_t>(i)] = 20 + i;
    }
    EXPECT_EQ(run.rank(0, 0), first);
    EXPECT_EQ(run.rank(0, 1), second);
}

TEST(Epoch, ResumesOnTheSameWorld) {
    const SmallRun run{.epoch = 1, .drop_first = 12};
    EXPECT_THAT(run.rank(0, 0), ElementsAre(15, 20, 16, 24, 0, 3, 18, 19, 14, 17, 13, 1, 21, 23));
    EXPECT_THAT(run.rank(0, 1), ElementsAre(8, 32, 26, 9, 35, 37, 5, 25, 28, 6, 31, 29, 27, 30));
}

TEST(Epoch, ResumesOnOtherWorlds) {
    const SmallRun two_machines{.epoch = 1, .nodes = 2, .ranks = 1, .drop_first = 12};
    EXPECT_THAT(two_machines.rank(0, 0),
                ElementsAre(15, 20, 16, 24, 0, 3, 18, 19, 14, 17, 13, 1, 21, 23));
    EXPECT_THAT(two_machines.rank(1, 0),
                ElementsAre(8, 32, 26, 9, 35, 37, 5, 25, 28, 6, 31, 29, 27, 30));

    const SmallRun one_rank{.epoch = 1, .ranks = 1, .batch = 6, .drop_first = 12};
    EXPECT_THAT(one_rank.rank(0, 0),
                ElementsAre(15, 8, 20, 32, 16, 26, 24, 9, 0, 35, 3, 37, 18, 5, 19, 25, 14, 28, 17,
                            6, 13, 31, 1, 29, 21, 27, 23, 30));

    const SmallRun four_ranks{.epoch = 1, .nodes = 2, .ranks = 2, .drop_first = 12};
    EXPECT_THAT(four_ranks.rank(0, 0), ElementsAre(15, 16, 0, 18, 14, 13, 21));
    EXPECT_THAT(four_ranks.rank(0, 1), ElementsAre(20, 24, 3, 19, 17, 1, 23));
    EXPECT_THAT(four_ranks.rank(1, 0), ElementsAre(8, 26, 35, 5, 28, 31, 27));
    EXPECT_THAT(four_ranks.rank(1, 1), ElementsAre(32, 9, 37, 25, 6, 29, 30));
}

TEST(Epoch, ResumesInTheMiddleOfARound) {
    const SmallRun run{.epoch = 1, .drop_first = 13};
    EXPECT_THAT(run.rank(0, 0), ElementsAre(8, 32, 26, 9, 35, 37, 5, 25, 28, 6, 31, 29, 27, 30));
    EXPECT_THAT(run.rank(0, 1), ElementsAre(20, 16, 24, 0, 3, 18, 19, 14, 17, 13, 1, 21, 23, 23));
}

TEST(Epoch, ResumesOnThreeMachinesAfterTwo) {
    const SmallRun start{.nodes = 2, .ranks = 1, .batch = 6};
    EXPECT_THAT(start.rank(0, 0), ElementsAre(2, 10, 11, 13, 0, 1, 3, 15, 4, 20, 19, 21, 18, 14, 12,
                                              23, 22, 24, 17, 16));
    const SmallRun resumed{
        .nodes = 3, .ranks = 1, .batch = 4, .drop_first = 12, .initial_nodes = 2};
    EXPECT_THAT(resumed.rank(0, 0), ElementsAre(3, 15, 4, 20, 18, 14, 12, 23, 17, 16, -1, -1));
    EXPECT_THAT(resumed.rank(1, 0), ElementsAre(19, 21, 9, 37, 22, 24, 28, 31, -1, -1, 29, 26));
    EXPECT_THAT(resumed.rank(2, 0), ElementsAre(39, 27, 8, 35, 25, 7, 5, 6, -1, -1, -1, -1));
}

SmallRun larger_run() {
    SmallRun run{.epoch = 3, .block_size = 256, .nodes = 2, .ranks = 4, .batch = 4};
    run.shards.assign(7, 128);
    run.shards.push_back(104);
    return run;
}

TEST(Epoch, EqualsMosaicsForALargerWorld) {
    const std::pair<ShuffleAlgo, const char*> expected[] = {
        {ShuffleAlgo::kPy1e, "ae2a46a142627e6d"},  {ShuffleAlgo::kPy1br, "e154039a48787141"},
        {ShuffleAlgo::kPy1s, "2279398ac2c31b61"},  {ShuffleAlgo::kPy2s, "d0d6cc48684c4ce2"},
        {ShuffleAlgo::kNaive, "f0348a2a4934600d"},
    };
    for (const auto& [algo, digest] : expected) {
        SmallRun run = larger_run();
        run.algo = algo;
        EXPECT_EQ(digest16(run.tensor(2)), digest) << shuffle_algo_name(algo);
    }
}

TEST(Epoch, ALargerWorldResumesWithMoreAndFewerRanks) {
    SmallRun run = larger_run();
    run.drop_first = 320;
    EXPECT_EQ(digest16(run.tensor(2)), "d978b6fbdc2e7884");
    run.nodes = 1;
    run.batch = 8;
    EXPECT_EQ(digest16(run.tensor(1)), "6fe9474288cc8f2c");
}

TEST(Epoch, TheFlatOrderIsTheGlobalOrder) {
    SmallRun run = larger_run();
    run.nodes = 1;
    run.ranks = 1;
    run.batch = 1;
    const Ids flat = run.rank(0, 0);
    EXPECT_EQ(digest16(flat), "27f74977a26746c1");
    EXPECT_THAT(Ids(flat.begin(), flat.begin() + 8),
                ElementsAre(159, 466, 251, 469, 161, 494, 254, 490));
}

// --- Sampling: stream A has shards of 6, 4, 5 samples (ids 0..14), stream B of 8, 7 (15..29). ----

std::vector<Stream> two_streams(std::int64_t choose_a, std::int64_t choose_b) {
    return {{{6, 4, 5}, choose_a}, {{8, 7}, choose_b}};
}

EpochOptions stream_epoch(std::int64_t epoch, std::int64_t rank,
                          SamplingMethod method = SamplingMethod::kBalanced) {
    EpochOptions options;
    options.sampling = {method, 1, 9176, epoch, true};
    options.shuffle = ShuffleOptions{ShuffleAlgo::kPy1e, 9176, epoch, 1, 10};
    options.partition = {0, 1, 1, 2, 2, 0, 0};
    options.rank_of_node = rank;
    return options;
}

TEST(Sampling, DrawsBalancedOverShards) {
    const Resampled first = resample(two_streams(18, 6), {.epoch = 0, .shuffle = true}).value();
    EXPECT_THAT(first.units, ElementsAre(6, 2, 4, 1, 5, 4, 2));
    EXPECT_THAT(first.sample_ids, ElementsAre(0, 1, 2, 3, 4, 5, 4, 5, 6, 7, 8, 9, 6, 10, 11, 12, 13,
                                              14, 15, 16, 19, 21, 26, 28));
    const Resampled second = resample(two_streams(18, 6), {.epoch = 1, .shuffle = true}).value();
    EXPECT_THAT(second.units, ElementsAre(6, 2, 4, 5, 1, 4, 2));
    EXPECT_THAT(second.sample_ids, ElementsAre(0, 1, 2, 3, 4, 5, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13,
                                               14, 13, 15, 16, 17, 18, 23, 27));
    const Resampled unshuffled = resample(two_streams(18, 6), {.epoch = 1}).value();
    EXPECT_EQ(unshuffled.units, first.units);
    EXPECT_THAT(unshuffled.sample_ids, ElementsAre(0, 1, 2, 3, 4, 5, 3, 5, 6, 7, 8, 9, 9, 10, 11,
                                                   12, 13, 14, 15, 16, 17, 18, 23, 27));
    const Resampled coarse =
        resample(two_streams(18, 6), {.granularity = 3, .shuffle = true}).value();
    EXPECT_THAT(coarse.units, ElementsAre(6, 3, 4, 5, 5, 1));
    EXPECT_THAT(coarse.sample_ids, ElementsAre(0, 1, 2, 3, 4, 5, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
                                               13, 14, 15, 17, 20, 21, 22, 28));
}

TEST(Sampling, FixedDrawsTheSameEachEpoch) {
    const SamplingOptions options{SamplingMethod::kFixed, 1, 9176, 0, true};
    SamplingOptions later = options;
    later.epoch = 1;
    const Resampled first = resample(two_streams(18, 6), options).value();
    const Resampled second = resample(two_streams(18, 6), later).value();
    EXPECT_EQ(first.sample_ids, second.sample_ids);
    EXPECT_THAT(
        rank_samples(two_streams(18, 6), stream_epoch(1, 0, SamplingMethod::kFixed)).value(),
        ElementsAre(4, 0, 19, 1, 26, 28, 6, 5, 4, 14, 9, 11));
}

TEST(Sampling, EpochsOfWeightedStreamsEqualMosaics) {
    EXPECT_THAT(rank_samples(two_streams(18, 6), stream_epoch(0, 0)).value(),
                ElementsAre(28, 4, 12, 5, 14, 0, 5, 4, 19, 15, 9, 8));
    EXPECT_THAT(rank_samples(two_streams(18, 6), stream_epoch(0, 1)).value(),
                ElementsAre(10, 26, 13, 11, 1, 2, 16, 3, 21, 7, 6, 6));
    EXPECT_THAT(rank_samples(two_streams(18, 6), stream_epoch(1, 1)).value(),
                ElementsAre(4, 0, 5, 1, 11, 10, 12, 13, 27, 9, 5, 8));
}

TEST(Sampling, CountsPerShardEqualMosaics) {
    const Stream stream{{100, 37, 250, 1, 400, 64, 64, 77, 300, 107}, 2100};
    EXPECT_THAT(choose_per_shard(stream, {.epoch = 3}, true).value(),
                ElementsAre(155, 59, 371, 1, 587, 93, 99, 118, 448, 169));
}

TEST(Sampling, RepeatsAndChoices) {
    const auto repeated = stream_choices({15, 15}, {{.repeat = 1.5}, {.choose = 3}}, 0, 9176);
    EXPECT_THAT(repeated.value(), ElementsAre(22, 3));
    const Resampled drawn = resample(two_streams(22, 3), {.shuffle = true}).value();
    EXPECT_THAT(drawn.units, ElementsAre(6, 2, 4, 3, 5, 2, 3));
    EXPECT_THAT(drawn.sample_ids, ElementsAre(0, 1, 2, 3, 4, 5, 4, 5, 6, 7, 8, 9, 6, 8, 9, 10, 11,
                                              12, 13, 14, 11, 13, 16, 18, 20));
}

TEST(Sampling, ProportionsAreRoundedWithTheSeed) {
    const std::vector<StreamWeight> three_to_one = {{.proportion = 3.0}, {.proportion = 1.0}};
    EXPECT_THAT(stream_choices({15, 15}, three_to_one, 25, 9176).value(), ElementsAre(18, 7));
    EXPECT_THAT(
        stream_choices({15, 15}, {{.proportion = .75}, {.proportion = .25}}, 24, 9176).value(),
        ElementsAre(18, 6));
    EXPECT_THAT(stream_choices({15, 15}, {{}, {}}, 20, 9176).value(), ElementsAre(10, 10));
    EXPECT_THAT(stream_choices({15, 15}, {{}, {}}, 0, 9176).value(), ElementsAre(15, 15));
    EXPECT_THAT(
        resample(two_streams(10, 10), {.shuffle = true}).value().sample_ids,
        ElementsAre(4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 16, 18, 20, 21, 23, 24, 25, 26, 27, 29));
}

TEST(Sampling, RefusesMixedWeights) {
    const auto message = [](const std::vector<StreamWeight>& weights, std::int64_t size) {
        const auto choices = stream_choices({15, 15}, weights, size, 1);
        return choices ? std::string("no error") : choices.error().message;
    };
    EXPECT_THAT(message({{.proportion = 1.0}, {.repeat = 1.0}}, 0), HasSubstr("every stream"));
    EXPECT_THAT(message({{.choose = 4}, {}}, 10), HasSubstr("epoch size"));
    EXPECT_THAT(message({{.repeat = 1.0, .choose = 4}, {}}, 0), HasSubstr("at most one"));
    EXPECT_THAT(message({{.repeat = -1.0}, {}}, 0), HasSubstr("negative"));
    EXPECT_THAT(message({{}}, 0), HasSubstr("one weight"));
    EXPECT_THAT(message({{.proportion = 0.0}, {.proportion = 0.0}}, 0), HasSubstr("add up"));
}

TEST(Sampling, EmptyShardsAreSkipped) {
    const Resampled all = resample({{{0, 4, 0, 3}, 7}}, {.shuffle = true}).value();
    EXPECT_THAT(all.units, ElementsAre(4, 3));
    EXPECT_EQ(all.sample_count, 7);
    const Resampled some = resample({{{0, 4, 0, 3}, 5}}, {.shuffle = true}).value();
    EXPECT_EQ(some.sample_count, 5);
    for (const std::int64_t id : some.sample_ids) EXPECT_LT(id, 7);
}

}  // namespace
}  // namespace tune::loader
