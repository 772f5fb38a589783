#include "worker/train/collective/shared_batches.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/worker/train/data_set.h"

namespace tune::train {
namespace {

void write_numbers(const DataSet& data, std::int64_t count) {
    std::vector<std::string> texts;
    for (std::int64_t i = 0; i < count; ++i) texts.push_back(std::to_string(i));
    std::vector<std::vector<loader::Value>> rows;
    for (const std::string& text : texts) rows.push_back({text});
    data.write("train", {{"x", "int"}}, rows);
}

loader::DatasetOptions options_of(const DataSet& data, std::int64_t batch) {
    loader::DatasetOptions options;
    options.directory = data.path();
    options.split = "train";
    options.batch_size = batch;
    options.shuffle = true;
    options.threads = 0;
    return options;
}

/// Each step's samples by their row in the step's batch, put together from all ranks.
using Steps = std::vector<std::map<std::int64_t, std::int64_t>>;

Steps steps_of(const DataSet& data, std::int64_t batch, std::int64_t ranks, int epochs) {
    Steps steps;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
        auto batches = SharedBatches::open(options_of(data, batch), rank, ranks);
        EXPECT_TRUE(batches) << batches.error().text();
        loader::Batch own;
        Share share;
        std::size_t step = 0;
        for (int epoch = 0; epoch < epochs; ++epoch)
            for (; *batches->next(own, share); ++step) {
                if (steps.size() <= step) steps.emplace_back();
                for (std::int64_t i = 0; i < share.rows; ++i) {
                    const std::int64_t row = share.first + i * share.stride;
                    EXPECT_TRUE(steps[step]
                                    .emplace(row, own.sample_ids[static_cast<std::size_t>(i)])
                                    .second);
                    EXPECT_LT(row, share.step_rows);
                }
            }
    }
    return steps;
}

TEST(SharedBatches, AreTheBatchesOfOneRankRowByRow) {
    for (const std::int64_t samples : {24, 25, 31, 37}) {
        const DataSet data;
        write_numbers(data, samples);
        const Steps alone = steps_of(data, 12, 1, 2);
        for (const std::int64_t ranks : {2, 3, 4, 6, 12})
            EXPECT_EQ(steps_of(data, 12, ranks, 2), alone) << samples << " on " << ranks;
    }
}

TEST(SharedBatches, WeighTheRanksToTheMeanOverAllRows) {
    const DataSet data;
    write_numbers(data, 25);
    double weights = 0.0;
    for (std::int64_t rank = 0; rank < 4; ++rank) {
        auto batches = SharedBatches::open(options_of(data, 12), rank, 4);
        loader::Batch own;
        Share share;
        for (int step = 0; step < 3; ++step) ASSERT_TRUE(*batches->next(own, share));
        EXPECT_EQ(share.rows, rank == 0 ? 1 : 0) << "25 = 12 + 12 + 1";
        EXPECT_GE(own.count, 1u);
        weights += share.weight();
        EXPECT_FALSE(*batches->next(own, share));
    }
    EXPECT_DOUBLE_EQ(weights, 4.0);
}

TEST(SharedBatches, GoOnWithAnotherNumberOfRanks) {
    const DataSet data;
    write_numbers(data, 31);
    const Steps alone = steps_of(data, 12, 1, 1);
    auto first = SharedBatches::open(options_of(data, 12), 0, 1);
    loader::Batch own;
    Share share;
    ASSERT_TRUE(*first->next(own, share));
    for (std::int64_t rank = 0; rank < 3; ++rank) {
        auto batches = SharedBatches::open(options_of(data, 12), rank, 3);
        ASSERT_TRUE(batches->load_state(first->dataset().state()));
        for (std::size_t step = 1; step < 3; ++step) {
            ASSERT_TRUE(*batches->next(own, share));
            for (std::int64_t i = 0; i < share.rows; ++i)
                EXPECT_EQ(own.sample_ids[static_cast<std::size_t>(i)],
                          alone[step].at(share.first + i * share.stride));
        }
        EXPECT_EQ(share.step_rows, 7);
    }
}

/// A stop may come between the last step of an epoch and its validation.
TEST(SharedBatches, FewerRanksGoOnAfterTheLastStepOfAnEpoch) {
    const DataSet data;
    write_numbers(data, 37);
    const Steps alone = steps_of(data, 12, 1, 2);
    auto before = SharedBatches::open(options_of(data, 12), 0, 4);
    loader::Batch own;
    Share share;
    for (int step = 0; step < 4; ++step) ASSERT_TRUE(*before->next(own, share));
    EXPECT_GT(before->dataset().state().sample_in_epoch, 37) << "repeats for the other ranks";
    for (const std::int64_t ranks : {1, 2, 3, 4, 6}) {
        auto batches = SharedBatches::open(options_of(data, 12), 0, ranks);
        const auto loaded = batches->load_state(before->dataset().state());
        ASSERT_TRUE(loaded) << ranks << ": " << loaded.error().text();
        EXPECT_FALSE(*batches->next(own, share)) << "the epoch is over";
        ASSERT_TRUE(*batches->next(own, share));
        EXPECT_EQ(own.sample_ids[0], alone[4].at(0)) << "the next one begins";
    }
}

}  // namespace
}  // namespace tune::train
