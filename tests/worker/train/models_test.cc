// The larger models against PyTorch in Python (vectors/models.json), and what they refuse.

#include <ATen/ops/arange.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/system/file.h"
#include "worker/train/learner.h"
#include "worker/train/models/drawn_mask.h"
#include "worker/train/models/shared_norm.h"
#include "worker/train/philox.h"

namespace tune::train {
namespace {

constexpr const char* kVectors = TUNE_SOURCE_DIR "/tests/worker/train/vectors/";

Inputs inputs_of(std::vector<std::int64_t> shape, std::int64_t classes) {
    Inputs inputs;
    inputs.shape = std::move(shape);
    inputs.columns = {{.name = "x", .elements = inputs.row_elements()}};
    inputs.label = "y";
    inputs.classes = classes;
    return inputs;
}

std::unique_ptr<Learner> made(const TrainConfig& config, const Inputs& inputs) {
    auto learner = Learner::make(config, inputs);
    EXPECT_TRUE(learner) << learner.error().message;
    return std::move(learner).value();
}

/// The formula of make_models.py: tensor `k` of the sorted names.
std::vector<float> formula(const TensorBytes& tensor, std::size_t k, const std::string& name) {
    std::vector<float> values(tensor.data.size() / sizeof(float));
    const std::size_t dimensions = tensor.shape.size();
    const bool is_one =
        dimensions == 1 && (name.ends_with("weight") || name.ends_with("running_var"));
    const double fan_in = dimensions > 1 ? static_cast<double>(values.size()) /
                                               static_cast<double>(tensor.shape.front())
                                         : 100.0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto j = static_cast<double>(i % 7919);
        const double wave = std::sin(0.37 * j * j + static_cast<double>(k));
        values[i] = static_cast<float>(is_one ? 1.0 + 0.1 * wave : wave / std::sqrt(fan_in));
    }
    return values;
}

/// A file with the formula's weights, and zeros for the optimizer's state.
Safetensors start_of(const Learner& learner) {
    std::vector<TensorBytes> tensors = learner.state();
    std::map<std::string, std::size_t> places;
    for (const TensorBytes& tensor : learner.weights()) places[tensor.name] = 0;
    std::size_t next = 0;
    for (auto& [name, place] : places) place = next++;
    std::vector<std::vector<float>> memory;
    for (TensorBytes& tensor : tensors) {
        if (tensor.dtype != "F32" || !tensor.name.starts_with("model.")) continue;
        const std::string name = tensor.name.substr(6);
        tensor.data =
            std::as_bytes(std::span(memory.emplace_back(formula(tensor, places.at(name), name))));
    }
    return std::move(Safetensors::parse(write_safetensors(tensors, {}))).value();
}

Samples samples_of(const Inputs& inputs) {
    const auto row = inputs.row_elements();
    Samples samples;
    samples.count = 4;
    for (std::int64_t i = 0; i < 4 * row; ++i) {
        if (inputs.is_tokens())
            samples.tokens.push_back(i * 7 % 11);
        else
            samples.features.push_back(static_cast<float>(std::sin(1.3 * static_cast<double>(i))));
    }
    if (!inputs.is_language()) samples.classes.assign({0, 1, 2, 2});
    return samples;
}

double sum_of(const TensorBytes& tensor) {
    double sum = 0;
    for (std::size_t i = 0; tensor.dtype == "F32" && i < tensor.data.size(); i += sizeof(float)) {
        float value = 0;
        std::memcpy(&value, tensor.data.data() + i, sizeof(float));
        sum += std::abs(static_cast<double>(value));
    }
    if (tensor.dtype == "I64") {
        std::int64_t value = 0;
        std::memcpy(&value, tensor.data.data(), sizeof(value));
        sum = static_cast<double>(value);
    }
    return sum;
}

std::map<std::string, std::vector<float>> values_of(const std::vector<TensorBytes>& tensors) {
    std::map<std::string, std::vector<float>> values;
    for (const TensorBytes& tensor : tensors) {
        if (tensor.dtype != "F32") continue;
        std::vector<float>& each = values[tensor.name];
        each.resize(tensor.data.size() / sizeof(float));
        std::memcpy(each.data(), tensor.data.data(), tensor.data.size());
    }
    return values;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
        sum += d * d;
    }
    return std::sqrt(sum);
}

void expect_as_pytorch(const Json& test) {
    TrainConfig config;
    for (const auto& [name, value] : test["parameters"].items())
        ASSERT_TRUE(set_parameter(config, name, value.get<std::string>())) << name;
    if (config.model == ModelKind::kTorchScript)
        config.module = std::string(kVectors) + "module.pt";
    Inputs inputs = inputs_of(test["shape"].get<std::vector<std::int64_t>>(), 3);
    inputs.vocabulary = test["vocabulary"].get<std::int64_t>();
    if (config.model == ModelKind::kGpt) {
        inputs.label = "";
        inputs.classes = 0;
    }
    const auto learner = made(config, inputs);
    ASSERT_TRUE(learner->load_state(start_of(*learner)));
    const Samples samples = samples_of(inputs);
    for (std::size_t step = 0; step < test["losses"].size(); ++step) {
        const auto before = values_of(learner->weights());
        const auto loss = learner->train(samples, static_cast<std::int64_t>(step), config.lr);
        ASSERT_TRUE(loss) << loss.error().message;
        const float expected = test["losses"][step].get<float>();
        EXPECT_NEAR(*loss, expected, 1e-3F * std::max(1.0F, expected)) << "step " << step;
        if (step > 0) continue;
        const auto moved = values_of(learner->weights());
        for (const auto& [name, norm] : test["gradients"].items()) {
            // Of a gradient of almost nothing, or far from the loss, float32 shows the noise.
            const double gradient = distance(before.at(name), moved.at(name)) / config.lr;
            EXPECT_NEAR(gradient, norm.get<double>(), 0.1 * norm.get<double>() + 2e-3) << name;
        }
    }
    Evaluation sums;
    ASSERT_TRUE(learner->evaluate(samples, sums));
    const auto after = test["after"].get<double>();
    EXPECT_NEAR(sums.loss / static_cast<double>(sums.count), after, 5e-3 * std::max(1.0, after));
    const std::vector<TensorBytes> weights = learner->weights();
    ASSERT_EQ(weights.size(), test["sums"].size()) << "the names are those of the state_dict";
    for (const TensorBytes& tensor : weights) {
        ASSERT_TRUE(test["sums"].contains(tensor.name)) << tensor.name;
        const auto expected = test["sums"][tensor.name].get<double>();
        EXPECT_NEAR(sum_of(tensor), expected, 2e-3 * std::max(1.0, expected)) << tensor.name;
    }
}

TEST(Models, TrainAsPyTorch) {
    const auto text = read_file(std::string(kVectors) + "models.json");
    const Json cases = parse_json(text.value()).value();
    ASSERT_EQ(cases.size(), 7u);
    for (const Json& test : cases) {
        SCOPED_TRACE(test["name"].get<std::string>());
        expect_as_pytorch(test);
    }
}

std::string weights_text(const Learner& learner) {
    return write_safetensors(learner.state(), {});
}

TEST(Models, GoOnFromTheirStateBitForBit) {
    const std::vector<std::map<std::string, std::string>> cases = {
        {{"model", "resnet18"}, {"stem", "small"}, {"dropout", "0.2"}},
        {{"model", "transformer"}, {"width", "16"}, {"dropout", "0.2"}},
        {{"model", "torchscript"}, {"module", std::string(kVectors) + "module.pt"}},
    };
    for (const auto& parameters : cases) {
        TrainConfig config;
        config.seed = 5;
        for (const auto& [name, value] : parameters)
            ASSERT_TRUE(set_parameter(config, name, value));
        const bool module = config.model == ModelKind::kTorchScript;
        const Inputs inputs =
            inputs_of(module ? std::vector<std::int64_t>{4} : std::vector<std::int64_t>{8, 8}, 3);
        const Samples samples = samples_of(inputs);
        const auto whole = made(config, inputs);
        for (int step = 0; step < 4; ++step) ASSERT_TRUE(whole->train(samples, step, 0.01));
        const auto first = made(config, inputs);
        for (int step = 0; step < 2; ++step) ASSERT_TRUE(first->train(samples, step, 0.01));
        const auto second = made(config, inputs);
        ASSERT_TRUE(second->load_state(*Safetensors::parse(weights_text(*first))));
        for (int step = 2; step < 4; ++step) ASSERT_TRUE(second->train(samples, step, 0.01));
        if (module) {
            // TorchScript's own executor rounds differently from run to run.
            EXPECT_NEAR(*second->train(samples, 4, 0.01), *whole->train(samples, 4, 0.01), 1e-4F);
            continue;
        }
        EXPECT_TRUE(weights_text(*second) == weights_text(*whole)) << parameters.at("model");
    }
}

TEST(Models, ReadBytesAsTheyAreStored) {
    TrainConfig config;
    config.model = ModelKind::kCnn;
    config.width = 4;
    Inputs inputs = inputs_of({8, 8, 3}, 3);
    inputs.columns[0].mean = 117.25;
    inputs.columns[0].scale = 1.0 / 63.5;
    const auto numbers = made(config, inputs);
    inputs.keeps_bytes = true;
    const auto bytes = made(config, inputs);
    Samples samples;
    samples.count = 4;
    samples.classes.assign({0, 1, 2, 2});
    for (int i = 0; i < 4 * 8 * 8 * 3; ++i) {
        const auto value = static_cast<std::uint8_t>(i * 89 % 256);
        samples.bytes.push_back(value);
        samples.features.push_back((static_cast<float>(value) - 117.25F) *
                                   static_cast<float>(1.0 / 63.5));
    }
    for (int step = 0; step < 3; ++step)
        EXPECT_EQ(*numbers->train(samples, step, 0.01), *bytes->train(samples, step, 0.01));
    EXPECT_TRUE(weights_text(*numbers) == weights_text(*bytes));
}

/// On a device masks are computed by tensor operations, on the CPU number by number.
TEST(Models, AMaskDrawnByTensorsIsTheOneDrawnByNumbers) {
    const auto expected = [](const std::vector<std::int64_t>& sizes, double drop, const Pass& pass,
                             std::uint32_t purpose) {
        const auto rows = static_cast<std::size_t>(sizes[0]);
        std::size_t row = 1;
        for (std::size_t i = 1; i < sizes.size(); ++i) row *= static_cast<std::size_t>(sizes[i]);
        std::vector<float> mask(rows * row);
        for (std::size_t i = 0; i < rows; ++i)
            fill_dropout_mask(mask.data() + i * row, row,
                              {.seed = pass.seed,
                               .purpose = purpose,
                               .moment = static_cast<std::uint32_t>(pass.step)},
                              drop,
                              row * (static_cast<std::size_t>(pass.first_row) +
                                     i * static_cast<std::size_t>(pass.row_stride)));
        return mask;
    };
    for (const std::vector<std::int64_t>& sizes :
         {std::vector<std::int64_t>{5, 16}, {3, 7, 3}, {1, 1}, {9, 4, 8}, {4, 13}}) {
        for (Pass pass : {Pass{.training = true, .seed = 3, .step = 0},
                          Pass{.training = true, .seed = 0xFEDCBA9876543210, .step = 0xFFFFFFF0},
                          Pass{.training = true, .seed = 1, .step = 77, .first_row = 5},
                          Pass{.training = true,
                          .seed = 9,
                          .step = 12,
                          .first_row = 1'234'567'891,
                          .row_stride = 3}}) {
            const std::uint32_t purpose = kDropoutPurpose + 4;
            const std::vector<float> numbers = expected(sizes, 0.3, pass, purpose);
            const auto same = [&](const at::Tensor& mask) {
                EXPECT_EQ(mask.sizes().vec(), sizes);
                const float* first = mask.contiguous().const_data_ptr<float>();
                return std::equal(numbers.begin(), numbers.end(), first);
            };
            EXPECT_TRUE(same(drawn_mask(sizes, at::kCPU, 0.3, pass, purpose)));
            // What a captured graph reads is the tensor, not the number of the step it was made in.
            Pass captured = pass;
            captured.step_on_device = at::full({}, pass.step, at::kLong);
            captured.step = 1;
            EXPECT_TRUE(same(drawn_mask(sizes, at::kCPU, 0.3, captured, purpose)));
        }
    }
}

/// As if there were more ranks: counts what it is asked.
class OneRank final : public RankSums {
public:
    int calls = 0;
    at::Tensor sum(const at::Tensor& own) override {
        ++calls;
        return own.clone();
    }
};

TEST(Models, NormalisationOverRanksIsThatOfOneRank) {
    const auto waves = [](const std::vector<std::int64_t>& sizes, double pace) {
        std::int64_t count = 1;
        for (const std::int64_t size : sizes) count *= size;
        return at::sin(at::mul(at::arange(count, at::kFloat), pace)).add_(3.0).reshape(sizes);
    };
    const auto differ = [](const at::Tensor& a, const at::Tensor& b) {
        return at::sub(a, b).abs().max().item<float>();
    };
    struct Passed {
        std::vector<at::Tensor> gradients;
        at::Tensor y, mean, variance;
    };
    const auto computed = [&](const at::Tensor& rows, RankSums* sums, std::int64_t counted) {
        const at::Tensor x = rows.clone().requires_grad_();
        const at::Tensor weight = waves({3}, 0.7).requires_grad_();
        const at::Tensor bias = waves({3}, 0.3).requires_grad_();
        Passed result;
        result.mean = at::zeros({3});
        result.variance = at::ones({3});
        result.y = sums == nullptr
                       ? at::batch_norm(x, weight, bias, result.mean, result.variance, true, 0.1,
                                        1e-5, false)
                       : shared_batch_norm(x, {weight, bias, result.mean, result.variance}, counted,
                                           *sums);
        const at::Tensor loss =
            at::mul(result.y.narrow(0, 0, counted), waves({counted, 3, 4, 4}, 1.3)).sum();
        result.gradients = torch::autograd::grad({loss}, {x, weight, bias});
        return result;
    };
    const at::Tensor rows = waves({7, 3, 4, 4}, 0.37);
    OneRank sums;
    const Passed expected = computed(rows.narrow(0, 0, 5), nullptr, 5);
    for (const std::int64_t filled_in : {0, 2}) {
        const Passed found = computed(rows.narrow(0, 0, 5 + filled_in), &sums, 5);
        EXPECT_LT(differ(found.y.narrow(0, 0, 5), expected.y), 1e-5F);
        EXPECT_LT(differ(found.mean, expected.mean), 1e-6F);
        EXPECT_LT(differ(found.variance, expected.variance), 1e-5F);
        EXPECT_LT(differ(found.gradients[0].narrow(0, 0, 5), expected.gradients[0]), 1e-4F);
        EXPECT_LT(differ(found.gradients[1], expected.gradients[1]), 1e-3F);
        EXPECT_LT(differ(found.gradients[2], expected.gradients[2]), 1e-3F);
        if (filled_in > 0) {
            EXPECT_EQ(found.gradients[0].narrow(0, 5, 2).abs().max().item<float>(), 0.0F)
                << "rows that do not count give nothing back";
        }
    }
    EXPECT_EQ(sums.calls, 4) << "one sum forward, one backward";
}

TEST(Models, LossesAndMetricsOfValues) {
    Inputs inputs = inputs_of({2}, 0);
    Samples samples;
    samples.count = 2;
    samples.features.assign({1.0F, 0.0F, 0.0F, 1.0F});
    samples.values.assign({3.0F, -2.0F});
    const auto evaluated = [&](const char* loss) {
        TrainConfig config;
        EXPECT_TRUE(set_parameter(config, "loss", loss));
        config.depth = 0;
        const auto learner = made(config, inputs);
        std::vector<TensorBytes> state = learner->state();
        const std::vector<float> weight = {1.0F, -1.5F};
        const std::vector<float> bias = {0.0F};
        for (TensorBytes& tensor : state) {
            if (tensor.name == "model.0.weight") tensor.data = std::as_bytes(std::span(weight));
            if (tensor.name == "model.0.bias") tensor.data = std::as_bytes(std::span(bias));
        }
        EXPECT_TRUE(learner->load_state(*Safetensors::parse(write_safetensors(state, {}))));
        Evaluation sums;
        EXPECT_TRUE(learner->evaluate(samples, sums));
        return sums;
    };
    // Errors are 2 and 0.5.
    EXPECT_NEAR(evaluated("mse").loss / 2, (4.0 + 0.25) / 2, 1e-6);
    EXPECT_NEAR(evaluated("mae").loss / 2, (2.0 + 0.5) / 2, 1e-6);
    EXPECT_NEAR(evaluated("huber").loss / 2, (1.5 + 0.125) / 2, 1e-6);
    EXPECT_NEAR(evaluated("mse").absolute_error, 2.5, 1e-6);
    EXPECT_NEAR(evaluated("mse").squared_error, 4.25, 1e-6);
    samples.values.assign({1.0F, 0.0F});
    const Evaluation bce = evaluated("bce");
    EXPECT_NEAR(bce.loss / 2, (std::log1p(std::exp(-1.0)) + std::log1p(std::exp(-1.5))) / 2, 1e-6);
    EXPECT_EQ(bce.correct, 2);
}

TEST(Models, LabelSmoothingGivesAPartToAllClasses) {
    const Inputs inputs = inputs_of({2}, 2);
    Samples samples;
    samples.count = 1;
    samples.features.assign({1.0F, -1.0F});
    samples.classes.assign({0});
    TrainConfig config;
    config.depth = 0;
    ASSERT_TRUE(set_parameter(config, "label-smoothing", "0.2"));
    const auto learner = made(config, inputs);
    std::vector<TensorBytes> state = learner->state();
    const std::vector<float> weight = {1.0F, 0.0F, 0.0F, 1.0F};
    const std::vector<float> bias = {0.0F, 0.0F};
    for (TensorBytes& tensor : state) {
        if (tensor.name == "model.0.weight") tensor.data = std::as_bytes(std::span(weight));
        if (tensor.name == "model.0.bias") tensor.data = std::as_bytes(std::span(bias));
    }
    ASSERT_TRUE(learner->load_state(*Safetensors::parse(write_safetensors(state, {}))));
    Evaluation sums;
    ASSERT_TRUE(learner->evaluate(samples, sums));
    // The scores are 1 and -1: the right class costs log(1 + e^-2), the other one 2 more.
    const double right = std::log1p(std::exp(-2.0));
    EXPECT_NEAR(sums.loss, 0.9 * right + 0.1 * (right + 2.0), 1e-6);
}

TEST(Models, RefuseWhatIsNoModule) {
    TrainConfig config;
    config.model = ModelKind::kTorchScript;
    const auto message = [&](const std::string& path) {
        config.module = path;
        const auto learner = Learner::make(config, inputs_of({4}, 3));
        EXPECT_FALSE(learner);
        EXPECT_EQ(learner.error().code, Code::kInvalidParameterValue);
        return learner.error().message;
    };
    EXPECT_NE(message("/nowhere.pt").find("there is no file '/nowhere.pt'"), std::string::npos);
    EXPECT_NE(message("a.pt2").find("torch.export"), std::string::npos);
    EXPECT_NE(message(std::string(kVectors) + "models.json").find("is not a TorchScript module"),
              std::string::npos);
}

}  // namespace
}  // namespace tune::train
