#include "worker/train/learning_rate.h"

#include <gtest/gtest.h>

#include "worker/train/config/config.h"

namespace tune::train {
namespace {

TEST(LearningRate, ScalesWithTheBatchSize) {
    EXPECT_DOUBLE_EQ(scaled_lr(0.1, LrScaling::kSqrt, 128, 32), 0.2);
    EXPECT_DOUBLE_EQ(scaled_lr(0.1, LrScaling::kLinear, 128, 32), 0.4);
    EXPECT_DOUBLE_EQ(scaled_lr(0.1, LrScaling::kNone, 128, 32), 0.1);
    EXPECT_DOUBLE_EQ(scaled_lr(0.1, LrScaling::kSqrt, 8, 32), 0.05);
    EXPECT_DOUBLE_EQ(scaled_lr(0.1, LrScaling::kLinear, 8, 32), 0.025);
}

TEST(LearningRate, BaseIsTheBatchSizeUnlessGiven) {
    TrainConfig config;
    config.lr = 0.1;
    config.batch_size = 128;
    EXPECT_DOUBLE_EQ(learning_rate(config, 10).effective, 0.1);
    config.base_batch_size = 32;
    EXPECT_DOUBLE_EQ(learning_rate(config, 10).effective, 0.2);
    EXPECT_DOUBLE_EQ(learning_rate(config, 10).base, 0.1);
}

TEST(LearningRate, WarmsUpLinearlyToTheEffectiveRate) {
    const LearningRate rate{.base = 1, .effective = 1, .warmup_steps = 4, .total_steps = 10};
    EXPECT_DOUBLE_EQ(rate.at(0), 0.25);
    EXPECT_DOUBLE_EQ(rate.at(1), 0.5);
    EXPECT_DOUBLE_EQ(rate.at(3), 1.0);
    EXPECT_DOUBLE_EQ(rate.at(4), 1.0);
    EXPECT_DOUBLE_EQ(rate.at(9), 1.0);
}

TEST(LearningRate, CosineFallsToZeroAfterWarmUp) {
    const LearningRate rate{.base = 1,
                            .effective = 2,
                            .schedule = LrSchedule::kCosine,
                            .warmup_steps = 2,
                            .total_steps = 10};
    EXPECT_DOUBLE_EQ(rate.at(0), 1.0);
    EXPECT_DOUBLE_EQ(rate.at(2), 2.0);
    EXPECT_NEAR(rate.at(6), 1.0, 1e-15);
    EXPECT_NEAR(rate.at(10), 0.0, 1e-15);
    EXPECT_NEAR(rate.at(99), 0.0, 1e-15) << "longer training keeps the last rate";
    for (int step = 3; step < 10; ++step) EXPECT_LT(rate.at(step), rate.at(step - 1));
}

TEST(LearningRate, WarmUpCoversTheSameSamplesForEveryBatchSize) {
    TrainConfig config;
    config.base_batch_size = 32;
    config.warmup_steps = 100;
    config.batch_size = 128;
    EXPECT_EQ(learning_rate(config, 10).warmup_steps, 25);
    config.warmup_steps = 0;
    config.warmup_epochs = 1.5;
    EXPECT_EQ(learning_rate(config, 10).warmup_steps, 15);
    EXPECT_EQ(learning_rate(config, 10).total_steps, 10 * config.epochs);
}

}  // namespace
}  // namespace tune::train
