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

}  // namespace
}  // namespace tune::train
