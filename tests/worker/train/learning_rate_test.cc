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

/// torch.optim.lr_scheduler.OneCycleLR(max_lr=0.1, total_steps=10): its own numbers.
TEST(LearningRate, OneCycleIsThatOfTorch) {
    const LearningRate rate{
        .base = 0.1, .effective = 0.1, .schedule = LrSchedule::kOneCycle, .total_steps = 10};
    const double expected[] = {0.004000000000000004,
                               0.052000000000000005,
                               0.1,
                               0.09504846320134738,
                               0.08117456539497631,
                               0.06112620219362893,
                               0.038874197806371085,
                               0.018825834605023698,
                               0.004951936798652626,
                               4e-07};
    for (int step = 0; step < 10; ++step) EXPECT_NEAR(rate.at(step), expected[step], 1e-12) << step;
    EXPECT_NEAR(rate.at(50), 4e-7, 1e-12);
}

TEST(LearningRate, LinearFallsToItsFloor) {
    LearningRate rate{.base = 1.0,
                      .effective = 1.0,
                      .schedule = LrSchedule::kLinear,
                      .warmup_steps = 2,
                      .total_steps = 12};
    EXPECT_DOUBLE_EQ(rate.at(0), 0.5);
    EXPECT_DOUBLE_EQ(rate.at(2), 1.0);
    EXPECT_DOUBLE_EQ(rate.at(7), 0.5);
    EXPECT_DOUBLE_EQ(rate.at(12), 0.0);
    rate.floor = 0.2;
    EXPECT_DOUBLE_EQ(rate.at(7), 0.6);
    EXPECT_DOUBLE_EQ(rate.at(99), 0.2);
    rate.schedule = LrSchedule::kCosine;
    EXPECT_DOUBLE_EQ(rate.at(7), 0.6);
    EXPECT_DOUBLE_EQ(rate.at(12), 0.2);
}

TEST(LearningRate, StepDropsEachSoManySteps) {
    const LearningRate rate{.base = 1.0,
                            .effective = 1.0,
                            .schedule = LrSchedule::kStep,
                            .total_steps = 100,
                            .step_steps = 30,
                            .step_factor = 0.5};
    EXPECT_DOUBLE_EQ(rate.at(29), 1.0);
    EXPECT_DOUBLE_EQ(rate.at(30), 0.5);
    EXPECT_DOUBLE_EQ(rate.at(99), 0.125);
}

/// Malladi et al. 2022, definition 5.2, with k = 4.
TEST(LearningRate, AdamSdeChangesBetasAndEps) {
    EXPECT_DOUBLE_EQ(scaled_lr(0.1, LrScaling::kAdamSde, 128, 32), 0.2);
    const AdamSettings scaled = scaled_adam({0.9, 0.999, 1e-8}, 4.0);
    EXPECT_DOUBLE_EQ(scaled.beta1, 0.6);
    EXPECT_DOUBLE_EQ(scaled.beta2, 0.996);
    EXPECT_DOUBLE_EQ(scaled.eps, 0.5e-8);
    EXPECT_FALSE(scaled.is_clamped);
    const AdamSettings clamped = scaled_adam({0.9, 0.999, 1e-8}, 16.0);
    EXPECT_EQ(clamped.beta1, 0.0);
    EXPECT_TRUE(clamped.is_clamped);
}

}  // namespace
}  // namespace tune::train
