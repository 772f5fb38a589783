#include "worker/train/learner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/json.h"
#include "base/system/file.h"

namespace tune::train {
namespace {

Inputs flat_inputs(std::vector<std::int64_t> shape, std::int64_t classes) {
    Inputs inputs;
    inputs.shape = std::move(shape);
    inputs.columns = {{.name = "x", .elements = inputs.row_elements()}};
    inputs.label = "y";
    inputs.classes = classes;
    return inputs;
}

std::unique_ptr<Learner> make(const TrainConfig& config, const Inputs& inputs) {
    auto learner = Learner::make(config, inputs);
    EXPECT_TRUE(learner) << learner.error().message;
    return std::move(learner).value();
}

/// Deterministic samples of a problem that can be learnt: the class is the largest feature.
Samples some_samples(std::int64_t count, std::int64_t row, std::int64_t classes) {
    Samples samples;
    samples.count = count;
    for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t largest = 0;
        for (std::int64_t j = 0; j < row; ++j) {
            samples.features.push_back(std::sin(static_cast<float>(i * 131 + j * 71)));
            const auto at = [&](std::int64_t k) {
                return samples.features[static_cast<std::size_t>(i * row + k)];
            };
            if (j < classes && at(j) > at(largest)) largest = j;
        }
        samples.classes.push_back(largest);
    }
    return samples;
}

/// A file with these tensors, and zeros for the optimizer's.
Safetensors state_with(const Learner& learner, const Json& start) {
    std::vector<std::vector<float>> memory;
    std::vector<TensorBytes> tensors = learner.state();
    for (TensorBytes& tensor : tensors) {
        std::vector<float>& values = memory.emplace_back(tensor.data.size() / sizeof(float), 0.0f);
        if (tensor.name.starts_with("model."))
            values = start.at(tensor.name.substr(6)).get<std::vector<float>>();
        tensor.data = std::as_bytes(std::span(values));
    }
    return std::move(Safetensors::parse(write_safetensors(tensors, {}))).value();
}

/// vectors/learner.json holds eight steps of the same models by PyTorch 2.15 in Python.
TEST(Learner, TrainsAsPyTorch) {
    const auto text = read_file(TUNE_SOURCE_DIR "/tests/worker/train/vectors/learner.json");
    const Json cases = parse_json(text.value()).value();
    ASSERT_EQ(cases.size(), 12u);
    for (const Json& test : cases) {
        SCOPED_TRACE(test["name"].get<std::string>());
        TrainConfig config;
        for (const auto& [name, value] : test["parameters"].items())
            ASSERT_TRUE(set_parameter(config, name, value.get<std::string>())) << name;
        const auto learner =
            make(config, flat_inputs(test["shape"].get<std::vector<std::int64_t>>(), 3));
        ASSERT_TRUE(learner->load_state(state_with(*learner, test["start"])));
        Samples samples;
        const auto x = test["x"].get<std::vector<float>>();
        const auto classes = test["classes"].get<std::vector<std::int64_t>>();
        samples.count = static_cast<std::int64_t>(classes.size());
        samples.features.assign(x.begin(), x.end());
        samples.classes.assign(classes.begin(), classes.end());
        for (std::size_t step = 0; step < test["losses"].size(); ++step) {
            const auto loss = learner->train(samples, static_cast<std::int64_t>(step), config.lr);
            ASSERT_TRUE(loss) << loss.error().message;
            EXPECT_NEAR(*loss, test["losses"][step].get<float>(), 2e-6) << "step " << step;
        }
        for (const TensorBytes& weight : learner->weights()) {
            const auto expected = test["end"].at(weight.name).get<std::vector<float>>();
            ASSERT_EQ(weight.data.size(), expected.size() * sizeof(float));
            for (std::size_t i = 0; i < expected.size(); ++i) {
                float value = 0;
                std::memcpy(&value, weight.data.data() + i * sizeof(float), sizeof(float));
                EXPECT_NEAR(value, expected[i], 5e-6) << weight.name << "[" << i << "]";
            }
        }
    }
}

std::string fingerprint(const Learner& learner) {
    return write_safetensors(learner.state(), {});
}

TEST(Learner, GoesOnFromItsStateBitForBit) {
    for (const char* model : {"mlp", "cnn"})
        for (const char* optimizer : {"adamw", "sgd"}) {
            TrainConfig config;
            ASSERT_TRUE(set_parameter(config, "model", model));
            ASSERT_TRUE(set_parameter(config, "optimizer", optimizer));
            config.width = 16;
            config.dropout = 0.3;
            config.seed = 11;
            const Inputs inputs = flat_inputs({8, 8}, 10);
            const Samples samples = some_samples(32, 64, 10);
            const auto whole = make(config, inputs);
            for (int step = 0; step < 10; ++step) ASSERT_TRUE(whole->train(samples, step, 0.01));
            const auto first = make(config, inputs);
            for (int step = 0; step < 4; ++step) ASSERT_TRUE(first->train(samples, step, 0.01));
            const auto second = make(config, inputs);
            ASSERT_TRUE(second->load_state(*Safetensors::parse(fingerprint(*first))));
            for (int step = 4; step < 10; ++step) ASSERT_TRUE(second->train(samples, step, 0.01));
            EXPECT_TRUE(fingerprint(*second) == fingerprint(*whole)) << model << " " << optimizer;
        }
}

TEST(Learner, SeedDecidesWeightsAndDropout) {
    TrainConfig config;
    config.dropout = 0.5;
    const Inputs inputs = flat_inputs({64}, 10);
    const Samples samples = some_samples(32, 64, 10);
    const auto after = [&](std::int64_t seed) {
        config.seed = seed;
        const auto learner = make(config, inputs);
        EXPECT_TRUE(learner->train(samples, 0, 0.01));
        return fingerprint(*learner);
    };
    EXPECT_TRUE(after(1) == after(1));
    EXPECT_FALSE(after(1) == after(2));
}

TEST(Learner, DropoutIsOffInEvaluation) {
    TrainConfig config;
    config.dropout = 0.5;
    const auto learner = make(config, flat_inputs({64}, 10));
    const Samples samples = some_samples(32, 64, 10);
    Evaluation first;
    Evaluation second;
    ASSERT_TRUE(learner->evaluate(samples, first));
    ASSERT_TRUE(learner->evaluate(samples, second));
    EXPECT_EQ(first.loss, second.loss);
    EXPECT_EQ(first.count, 32);
}

TEST(Learner, LearnsClasses) {
    for (const char* model : {"mlp", "cnn"}) {
        TrainConfig config;
        ASSERT_TRUE(set_parameter(config, "model", model));
        config.width = 32;
        const auto learner = make(config, flat_inputs({8, 8}, 4));
        const Samples samples = some_samples(64, 64, 4);
        for (int step = 0; step < 300; ++step) ASSERT_TRUE(learner->train(samples, step, 0.01));
        Evaluation sums;
        ASSERT_TRUE(learner->evaluate(samples, sums));
        EXPECT_EQ(sums.correct, 64) << model;
        EXPECT_LT(sums.loss / 64, 0.05) << model;
    }
}

TEST(Learner, LearnsValues) {
    TrainConfig config;
    Inputs inputs = flat_inputs({4}, 0);
    inputs.label_mean = 100.0;
    inputs.label_scale = 0.1;
    const auto learner = make(config, inputs);
    Samples samples = some_samples(64, 4, 4);
    samples.classes.clear();
    for (std::size_t i = 0; i < 64; ++i)
        samples.values.push_back(samples.features[4 * i] - samples.features[4 * i + 1]);
    for (int step = 0; step < 500; ++step) ASSERT_TRUE(learner->train(samples, step, 0.005));
    Evaluation sums;
    ASSERT_TRUE(learner->evaluate(samples, sums));
    EXPECT_LT(sums.loss / 64, 0.01);
    EXPECT_LT(sums.absolute_error / 64, 1.0) << "in units of the label";
    EXPECT_GT(sums.absolute_error / 64, 0.0);
}

TEST(Learner, DescribesItselfInPython) {
    TrainConfig config;
    config.width = 8;
    config.depth = 1;
    auto learner = make(config, flat_inputs({3}, 2));
    EXPECT_EQ(learner->python_source(),
              "nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Dropout(0), nn.Linear(8, 2))");
    EXPECT_EQ(learner->weights()[2].name, "3.weight");
    EXPECT_EQ(learner->parameter_count(), 3 * 8 + 8 + 8 * 2 + 2);
    config.model = ModelKind::kCnn;
    config.width = 4;
    learner = make(config, flat_inputs({8, 8}, 2));
    EXPECT_EQ(learner->python_source(),
              "nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), "
              "nn.Flatten(), nn.Dropout(0), nn.Linear(64, 2))");
    EXPECT_EQ(learner->weights()[2].name, "5.weight");
    config.model = ModelKind::kMlp;
    config.depth = 0;
    EXPECT_EQ(make(config, flat_inputs({3}, 2))->python_source(), "nn.Sequential(nn.Linear(3, 2))");
}

TEST(Learner, SaysWhatACnnNeeds) {
    TrainConfig config;
    config.model = ModelKind::kCnn;
    for (const auto& shape : {std::vector<std::int64_t>{64}, {2, 8, 8}, {1, 8, 8, 1}}) {
        const auto learner = Learner::make(config, flat_inputs(shape, 2));
        ASSERT_FALSE(learner);
        EXPECT_EQ(learner.error().code, Code::kInvalidParameterValue);
    }
    EXPECT_NE(Learner::make(config, flat_inputs({64}, 2)).error().message.find("shape 64"),
              std::string::npos);
    for (const auto& shape : {std::vector<std::int64_t>{8, 8}, {8, 8, 3}, {1, 8, 8}, {2, 2}})
        EXPECT_TRUE(Learner::make(config, flat_inputs(shape, 2)));
}

TEST(Learner, ReportsThatMemoryIsNotEnough) {
    TrainConfig config;
    config.width = 1'000'000;
    config.depth = 2;  // 10^12 weights: 4 TB
    const auto learner = Learner::make(config, flat_inputs({4}, 2));
    ASSERT_FALSE(learner);
    EXPECT_EQ(learner.error().code, Code::kResourceExhausted) << learner.error().message;
}

TEST(Learner, RefusesAStateThatIsNotItsOwn) {
    TrainConfig config;
    const Inputs inputs = flat_inputs({4}, 2);
    const auto learner = make(config, inputs);
    std::vector<TensorBytes> tensors = learner->state();
    tensors.pop_back();
    const auto missing = learner->load_state(*Safetensors::parse(write_safetensors(tensors, {})));
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().message, "tensor 'optimizer.6.bias.exp_avg_sq' is missing");
    config.width = 64;
    const auto other = make(config, inputs);
    const auto wrong = learner->load_state(*Safetensors::parse(fingerprint(*other)));
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().message,
              "tensor 'model.0.weight' has another type or shape than the model's");
}

}  // namespace
}  // namespace tune::train
