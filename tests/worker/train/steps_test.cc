// What a step can do besides its plain form: parts, clipping, mixed precision, frozen layers,
// weights from elsewhere, memory that runs out.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <tuple>

#include "base/id.h"
#include "base/system/file.h"
#include "worker/train/learner.h"
#include "worker/train/selfcheck/limited_memory.h"

namespace tune::train::steps_test {
namespace {

using Parameters = std::map<std::string, std::string>;

Inputs inputs_of(std::vector<std::int64_t> shape, std::int64_t classes) {
    Inputs inputs;
    inputs.shape = std::move(shape);
    inputs.columns = {{.name = "x", .elements = inputs.row_elements()}};
    inputs.label = "y";
    inputs.classes = classes;
    return inputs;
}

std::unique_ptr<Learner> make(const Parameters& parameters, const Inputs& inputs) {
    TrainConfig config;
    config.seed = 3;
    for (const auto& [name, value] : parameters) EXPECT_TRUE(set_parameter(config, name, value));
    auto learner = Learner::make(config, inputs);
    EXPECT_TRUE(learner) << learner.error().message;
    return std::move(learner).value();
}

Samples samples_of(std::int64_t count, std::int64_t row, std::int64_t classes) {
    Samples samples;
    samples.count = count;
    for (std::int64_t i = 0; i < count * row; ++i)
        samples.features.push_back(
            static_cast<float>(std::sin(1.3 * static_cast<double>(i * i % 977))));
    for (std::int64_t i = 0; i < count; ++i) samples.classes.push_back(i * 7 % classes);
    return samples;
}

std::vector<float> weights_of(const Learner& learner, const std::string& name = "") {
    std::vector<float> values;
    for (const TensorBytes& tensor : learner.weights()) {
        if (!name.empty() && tensor.name != name) continue;
        const std::size_t begin = values.size();
        values.resize(begin + tensor.data.size() / sizeof(float));
        std::memcpy(values.data() + begin, tensor.data.data(), tensor.data.size());
    }
    return values;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
    EXPECT_EQ(a.size(), b.size());
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        sum += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    return std::sqrt(sum);
}

/// Weights after some steps, and the last loss.
std::pair<std::vector<float>, float> trained(const Parameters& parameters, int steps = 4) {
    const auto learner = make(parameters, inputs_of({8, 8}, 10));
    const Samples samples = samples_of(30, 64, 10);
    float last = 0;
    for (int step = 0; step < steps; ++step) {
        const auto loss = learner->train(samples, step, 0.01);
        EXPECT_TRUE(loss) << loss.error().message;
        last = *loss;
    }
    return {weights_of(*learner), last};
}

TEST(Steps, PartsOfABatchAddUpToIt) {
    for (const char* dropout : {"0", "0.4"}) {
        const auto whole = trained({{"dropout", dropout}});
        for (const char* parts : {"2", "7", "30"}) {
            const auto cut = trained({{"dropout", dropout}, {"accumulate", parts}});
            EXPECT_LT(distance(cut.first, whole.first), 2e-3) << parts;
            EXPECT_NEAR(cut.second, whole.second, 1e-4) << parts;
        }
    }
}

TEST(Steps, ClippingBoundsTheUpdate) {
    const Parameters sgd = {{"optimizer", "sgd"}, {"momentum", "0"}};
    const auto moved = [&](Parameters parameters) {
        parameters.insert(sgd.begin(), sgd.end());
        return distance(trained(parameters, 1).first, trained(parameters, 0).first) / 0.01;
    };
    const double norm = moved({});
    ASSERT_GT(norm, 0.2);
    EXPECT_NEAR(moved({{"clip-norm", "0.1"}}), 0.1, 1e-3);
    EXPECT_NEAR(moved({{"clip-norm", "1000"}}), norm, 1e-3);
    const auto start =
        trained({{"clip-value", "0.001"}, {"optimizer", "sgd"}, {"momentum", "0"}}, 0);
    const auto end = trained({{"clip-value", "0.001"}, {"optimizer", "sgd"}, {"momentum", "0"}}, 1);
    for (std::size_t i = 0; i < start.first.size(); ++i)
        EXPECT_LE(std::abs(start.first[i] - end.first[i]), 0.001F * 0.01F * 1.01F + 1e-8F);
}

TEST(Steps, MixedPrecisionStaysNearFloat32) {
    const auto exact = trained({}, 20);
    for (const char* precision : {"bf16", "fp16"}) {
        const auto mixed = trained({{"precision", precision}}, 20);
        EXPECT_NE(mixed.first, exact.first) << precision;
        EXPECT_NEAR(mixed.second, exact.second, 0.05) << precision;
        EXPECT_EQ(trained({{"precision", precision}}, 20), mixed) << precision;
    }
}

TEST(Steps, AFloat16StepThatOverflowsIsLeftOut) {
    const auto learner = make({{"precision", "fp16"}}, inputs_of({8, 8}, 10));
    const auto scale = [&] {
        for (const TensorBytes& tensor : learner->state())
            if (tensor.name == "scaler.scale") {
                float value = 0;
                std::memcpy(&value, tensor.data.data(), sizeof(value));
                return value;
            }
        return 0.0F;
    };
    EXPECT_EQ(scale(), 65536.0F);
    const auto before = weights_of(*learner);
    Samples samples = samples_of(30, 64, 10);
    for (float& feature : samples.features) feature *= 1e6F;  // beyond what float16 holds
    ASSERT_TRUE(learner->train(samples, 0, 0.01));
    EXPECT_EQ(weights_of(*learner), before);
    EXPECT_EQ(scale(), 32768.0F);
    ASSERT_TRUE(learner->train(samples_of(30, 64, 10), 1, 0.01));
    EXPECT_NE(weights_of(*learner), before);
    for (const float value : weights_of(*learner)) ASSERT_TRUE(std::isfinite(value));
}

TEST(Steps, ChannelsLastComputesTheSame) {
    const Parameters cnn = {{"model", "cnn"}, {"width", "8"}};
    Parameters last = cnn;
    last["channels-last"] = "true";
    EXPECT_LT(distance(trained(last).first, trained(cnn).first), 1e-3);
    const auto learner = make(last, inputs_of({8, 8}, 10));
    ASSERT_TRUE(learner->train(samples_of(30, 64, 10), 0, 0.01));
    const auto file = Safetensors::parse(write_safetensors(learner->state(), {}));
    const auto other = make(last, inputs_of({8, 8}, 10));
    ASSERT_TRUE(other->load_state(*file));
    EXPECT_EQ(weights_of(*other), weights_of(*learner));
}

TEST(Steps, DeterministicModeTrains) {
    EXPECT_EQ(trained({{"deterministic", "true"}, {"model", "cnn"}, {"width", "8"}}).first,
              trained({{"model", "cnn"}, {"width", "8"}}).first);
    static_cast<void>(trained({}, 0));  // and off again
}

TEST(Steps, MeasuresTheNoiseWithoutChangingMuch) {
    const auto learner = make({{"noise-every", "2"}}, inputs_of({8, 8}, 10));
    const Samples samples = samples_of(30, 64, 10);
    for (int step = 0; step < 4; ++step) ASSERT_TRUE(learner->train(samples, step, 0.01));
    const auto noise = learner->take_noise();
    ASSERT_TRUE(noise);
    ASSERT_EQ(noise->size(), 2u);
    for (const NoiseSample& sample : *noise) {
        EXPECT_EQ(sample.parts, 2);
        EXPECT_EQ(sample.big_batch, 30.0);
        EXPECT_GT(sample.small_square / 2, sample.big_square) << "a mean is shorter than its parts";
        EXPECT_GT(sample.big_square, 0.0);
    }
    EXPECT_TRUE(learner->take_noise()->empty());
    EXPECT_LT(distance(weights_of(*learner), trained({}).first), 2e-3);
}

TEST(Steps, FrozenLayersStayUntilTheirEpoch) {
    const auto learner = make({{"freeze", "^0"}, {"unfreeze", "2:weight"}, {"optimizer", "sgd"}},
                              inputs_of({8, 8}, 10));
    const Samples samples = samples_of(30, 64, 10);
    const auto start = weights_of(*learner, "0.weight");
    const auto bias = weights_of(*learner, "0.bias");
    const auto head = weights_of(*learner, "6.weight");
    for (int epoch = 0; epoch < 4; ++epoch) {
        ASSERT_TRUE(learner->begin_epoch(epoch, 1));
        ASSERT_TRUE(learner->train(samples, epoch, 0.01));
        EXPECT_EQ(weights_of(*learner, "0.weight") == start, epoch < 2) << epoch;
        EXPECT_EQ(weights_of(*learner, "0.bias"), bias);
        EXPECT_NE(weights_of(*learner, "6.weight"), head);
    }
    const auto nothing = make({{"freeze", "."}}, inputs_of({8, 8}, 10));
    const auto refused = nothing->begin_epoch(0, 1);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, "freeze: '.' leaves nothing to train in epoch 0");
}

TEST(Steps, FrozenBatchNormKeepsItsStatistics) {
    const auto learner =
        make({{"model", "resnet18"}, {"stem", "small"}, {"freeze", "^(conv1|bn1|layer1)"}},
             inputs_of({8, 8}, 3));
    ASSERT_TRUE(learner->begin_epoch(0, 10));
    const auto frozen = weights_of(*learner, "layer1.0.bn1.running_mean");
    const auto free = weights_of(*learner, "layer2.0.bn1.running_mean");
    ASSERT_TRUE(learner->train(samples_of(4, 64, 3), 0, 0.01));
    EXPECT_EQ(weights_of(*learner, "layer1.0.bn1.running_mean"), frozen);
    EXPECT_NE(weights_of(*learner, "layer2.0.bn1.running_mean"), free);
}

TEST(Steps, RatesFallFromLayerToLayer) {
    const auto moved = [&](const Parameters& parameters, const std::string& name) {
        const auto learner = make(parameters, inputs_of({8, 8}, 10));
        EXPECT_TRUE(learner->begin_epoch(0, 1));
        const auto start = weights_of(*learner, name);
        EXPECT_TRUE(learner->train(samples_of(30, 64, 10), 0, 0.01));
        return distance(weights_of(*learner, name), start);
    };
    const Parameters plain = {{"optimizer", "sgd"}, {"momentum", "0"}};
    Parameters decayed = plain;
    decayed["lr-decay"] = "0.5";
    for (const auto& [name, factor] :
         std::map<std::string, double>{{"0.weight", 0.25}, {"3.weight", 0.5}, {"6.weight", 1.0}})
        EXPECT_NEAR(moved(decayed, name) / moved(plain, name), factor, 0.01) << name;
}

/// A folder that is removed at the end.
struct Folder {
    std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("steps_test." + random_hex(6));
    Folder() { std::filesystem::create_directory(path); }
    ~Folder() { std::filesystem::remove_all(path); }
};

TEST(Steps, StartFromAnotherModelsWeights) {
    const Folder folder;
    const std::string file = folder.path / "model.safetensors";
    const auto old = make({}, inputs_of({8, 8}, 10));
    ASSERT_TRUE(old->train(samples_of(30, 64, 10), 0, 0.01));
    ASSERT_TRUE(write_file_atomic(file, write_safetensors(old->weights(), {})));

    for (const std::string& path : {file, folder.path.string()}) {
        const auto same = make({{"init-from", path}, {"seed", "9"}}, inputs_of({8, 8}, 10));
        const auto report = same->start_from_file();
        ASSERT_TRUE(report) << report.error().message;
        EXPECT_EQ(weights_of(*same), weights_of(*old));
        EXPECT_NE(report->find("6 tensors taken"), std::string::npos) << *report;
    }
    const auto other = make({{"init-from", file}}, inputs_of({8, 8}, 4));
    const auto head = weights_of(*other, "6.weight");
    const auto report = other->start_from_file();
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_NE(report->find("new: 6.weight, 6.bias"), std::string::npos) << *report;
    EXPECT_EQ(weights_of(*other, "0.weight"), weights_of(*old, "0.weight"));
    EXPECT_EQ(weights_of(*other, "6.weight"), head);

    const auto fresh =
        make({{"init-from", file}, {"new-head", "true"}, {"seed", "9"}}, inputs_of({8, 8}, 10));
    ASSERT_TRUE(fresh->start_from_file());
    EXPECT_NE(weights_of(*fresh, "6.weight"), weights_of(*old, "6.weight"));

    // The prefixes of wrappers and of our own checkpoints are no hindrance.
    ASSERT_TRUE(write_file_atomic(file, write_safetensors(old->state(), {})));
    const auto again = make({{"init-from", file}, {"seed", "9"}}, inputs_of({8, 8}, 10));
    ASSERT_TRUE(again->start_from_file());
    EXPECT_EQ(weights_of(*again), weights_of(*old));

    const auto module = make({{"model", "torchscript"},
                              {"module", TUNE_SOURCE_DIR "/tests/worker/train/vectors/module.pt"}},
                             inputs_of({4}, 3));
    const auto wide = make({{"init-from", file}, {"width", "64"}}, inputs_of({8, 8}, 10));
    const auto refused = wide->start_from_file();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kInvalidParameterValue);
    EXPECT_NE(refused.error().message.find("'0.weight' is [128,64] there and [64,64] here"),
              std::string::npos)
        << refused.error().message;
    const auto nowhere = make({{"init-from", "/nowhere"}}, inputs_of({8, 8}, 10));
    EXPECT_EQ(nowhere->start_from_file().error().code, Code::kResourceDoesNotExist);
}

TEST(Steps, StartFromATorchScriptModule) {
    const std::string file = TUNE_SOURCE_DIR "/tests/worker/train/vectors/module.pt";
    const auto learner =
        make({{"model", "torchscript"}, {"module", file}, {"init-from", file}}, inputs_of({4}, 3));
    const auto before = weights_of(*learner);
    Samples samples = samples_of(4, 4, 3);
    ASSERT_TRUE(learner->train(samples, 0, 0.1));
    ASSERT_NE(weights_of(*learner), before);
    const auto report = learner->start_from_file();
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(weights_of(*learner, "head.weight"),
              weights_of(*make({{"model", "torchscript"}, {"module", file}}, inputs_of({4}, 3)),
                         "head.weight"));
}

TEST(Steps, MemoryThatRunsOutCutsTheBatchAndKeepsTheResult) {
    LimitedMemory& allocator = LimitedMemory::install();
    const Parameters wide = {{"width", "256"}, {"dropout", "0.3"}};
    const auto run = [&](std::size_t limit, std::int64_t rows) {
        const auto learner = make(wide, inputs_of({8, 8}, 10));
        allocator.limit = limit;
        allocator.refused = 0;
        const Samples samples = samples_of(rows, 64, 10);
        float last = 0;
        for (int step = 0; step < 3; ++step) {
            const auto loss = learner->train(samples, step, 0.01);
            EXPECT_TRUE(loss) << loss.error().message;
            if (loss) last = *loss;
        }
        allocator.limit = SIZE_MAX;
        return std::tuple(learner->parts(), weights_of(*learner), last);
    };
    const auto [parts, weights, loss] = run(SIZE_MAX, 1024);
    EXPECT_EQ(parts, 1);
    // 1024 rows of 256 numbers are 1 MB; the weights take at most 256 KB.
    const auto [cut_parts, cut_weights, cut_loss] = run(300 << 10, 1024);
    EXPECT_GE(cut_parts, 4);
    EXPECT_LE(cut_parts, 8);
    EXPECT_GT(allocator.refused.load(), 1);
    EXPECT_NEAR(cut_loss, loss, 1e-4);
    EXPECT_LT(distance(cut_weights, weights), 5e-3);

    // Where not even one sample fits there is nothing to cut.
    const auto learner = make(wide, inputs_of({8, 8}, 10));
    allocator.limit = 100;
    const auto failed = learner->train(samples_of(4, 64, 10), 0, 0.01);
    allocator.limit = SIZE_MAX;
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, Code::kResourceExhausted);
    ASSERT_TRUE(learner->train(samples_of(4, 64, 10), 0, 0.01)) << "and later there is room again";
}

}  // namespace
}  // namespace tune::train::steps_test
