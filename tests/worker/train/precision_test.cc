#include "worker/train/device/precision.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "worker/train/learner.h"
#include "worker/train/selfcheck/examples.h"

namespace tune::train {
namespace {

std::unique_ptr<Learner> learner_in(Precision precision, const std::string& model) {
    Example example = *example_of(model);
    example.config.precision = precision;
    auto learner = Learner::make(example.config, example.inputs);
    EXPECT_TRUE(learner) << learner.error().message;
    return std::move(learner).value();
}

std::vector<float> losses_in(Precision precision, const std::string& model) {
    const auto learner = learner_in(precision, model);
    const Samples samples = example_of(model)->samples;
    std::vector<float> losses;
    for (int step = 0; step < 40; ++step) {
        const auto loss = learner->train(samples, step, 1e-2);
        EXPECT_TRUE(loss) << loss.error().message;
        losses.push_back(loss ? *loss : NAN);
    }
    return losses;
}

TEST(Precision, SixteenBitsLearnAsFloat32Does) {
    for (const char* model : {"mlp", "cnn"}) {
        const std::vector<float> exact = losses_in(Precision::kFloat32, model);
        for (const Precision precision : {Precision::kBfloat16, Precision::kFloat16}) {
            const std::vector<float> rough = losses_in(precision, model);
            EXPECT_NE(rough.front(), exact.front()) << model << ": nothing was computed in 16 bits";
            EXPECT_NEAR(rough.front(), exact.front(), 0.02f * exact.front()) << model;
            EXPECT_LT(rough.back(), 0.5f * rough.front()) << model;
            EXPECT_NEAR(rough.back(), exact.back(), 0.1f * exact.front()) << model;
        }
    }
}

TEST(Precision, TheScaleOfFp16IsPartOfTheState) {
    const auto names = [](const Learner& learner) {
        std::vector<std::string> found;
        for (const TensorBytes& tensor : learner.state())
            if (tensor.name.starts_with("scaler.")) found.push_back(tensor.name);
        return found;
    };
    const auto learner = learner_in(Precision::kFloat16, "mlp");
    EXPECT_EQ(names(*learner), (std::vector<std::string>{"scaler.scale", "scaler.good_steps"}));
    EXPECT_TRUE(names(*learner_in(Precision::kBfloat16, "mlp")).empty());

    // An infinite sample: the step changes no weight, and the scale is halved.
    Samples samples = example_of("mlp")->samples;
    ASSERT_TRUE(learner->train(samples, 0, 1e-2));
    const auto weights_before = write_safetensors(learner->weights(), {});
    samples.features.front() = 1e30f;
    ASSERT_TRUE(learner->train(samples, 1, 1e-2));
    EXPECT_EQ(write_safetensors(learner->weights(), {}), weights_before);
    const auto file = Safetensors::parse(write_safetensors(learner->state(), {}));
    ASSERT_TRUE(file);
    float scale = 0;
    std::memcpy(&scale, file->find("scaler.scale")->data.data(), sizeof scale);
    EXPECT_EQ(scale, 32768.0f);

    const auto other = learner_in(Precision::kFloat16, "mlp");
    ASSERT_TRUE(other->load_state(*file));
    EXPECT_EQ(write_safetensors(other->state(), {}), write_safetensors(learner->state(), {}));
}

TEST(Precision, AGradientOfTwoLeavesIsDividedOnce) {
    GradScaler scaler(at::kCPU, 1024.0);
    const at::Tensor shared = at::full({3}, 2048.0);
    const at::Tensor own = at::full({2}, 512.0);
    scaler.unscale({shared, own, shared});
    EXPECT_TRUE(at::equal(shared, at::full({3}, 2.0)));
    EXPECT_TRUE(at::equal(own, at::full({2}, 0.5)));
    EXPECT_EQ(scaler.found_infinite().item<float>(), 0.0f);
}

TEST(Precision, AResumedRunKnowsWhichStepsOfFp16WereLeftOut) {
    const auto whole = learner_in(Precision::kFloat16, "mlp");
    const Samples good = example_of("mlp")->samples;
    Samples infinite = good;
    infinite.features.front() = 1e30f;
    ASSERT_TRUE(whole->train(infinite, 0, 1e-2));
    ASSERT_TRUE(whole->train(good, 1, 1e-2));
    ASSERT_TRUE(whole->train(infinite, 2, 1e-2));
    const auto file = Safetensors::parse(write_safetensors(whole->state(), {}));
    const auto resumed = learner_in(Precision::kFloat16, "mlp");
    ASSERT_TRUE(resumed->load_state(*file));
    for (int step = 3; step < 6; ++step) {
        ASSERT_TRUE(whole->train(good, step, 1e-2));
        ASSERT_TRUE(resumed->train(good, step, 1e-2));
        EXPECT_EQ(write_safetensors(resumed->state(), {}), write_safetensors(whole->state(), {}))
            << "after step " << step;
    }
}

TEST(Precision, StepsLeftOutBeforeALayerIsTrainedAreNotItsOwn) {
    Example example = *example_of("mlp");
    example.config.precision = Precision::kFloat16;
    example.config.freeze = "^0";
    example.config.unfreeze = "2:.";
    const auto made = Learner::make(example.config, example.inputs);
    ASSERT_TRUE(made) << made.error().message;
    Learner& learner = **made;
    Samples infinite = example.samples;
    infinite.features.front() = 1e30f;
    const auto bias = [&] {
        std::vector<float> values;
        for (const TensorBytes& tensor : learner.weights())
            if (tensor.name == "0.bias") {
                values.resize(tensor.data.size() / sizeof(float));
                std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
            }
        return values;
    };
    ASSERT_TRUE(learner.begin_epoch(0, 1));
    ASSERT_TRUE(learner.train(infinite, 0, 1e-2));
    ASSERT_TRUE(learner.begin_epoch(1, 1));
    ASSERT_TRUE(learner.train(infinite, 1, 1e-2));
    ASSERT_TRUE(learner.begin_epoch(2, 1));
    const std::vector<float> before = bias();
    ASSERT_TRUE(learner.train(example.samples, 2, 1e-2));
    double largest = 0.0;
    for (std::size_t i = 0; i < before.size(); ++i)
        largest = std::max(largest, std::abs(static_cast<double>(bias()[i] - before[i])));
    // AdamW's first step is as long as the rate, whatever the gradient, if it is counted as that.
    EXPECT_NEAR(largest, 1e-2, 1e-3);
}

}  // namespace
}  // namespace tune::train
