// Checks of the learner. On the CPU the reference is arithmetic in double precision that knows
// nothing of LibTorch: differences of losses for gradients, the rules of the optimizers written
// out. On a GPU it is the CPU.

#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "loader/dataset.h"
#include "worker/train/checkpoint/safetensors.h"
#include "worker/train/device/device.h"
#include "worker/train/learner.h"
#include "worker/train/selfcheck/examples.h"
#include "worker/train/selfcheck/steps.h"

namespace tune::train {
namespace {

/// float32 tensors by name.
using Values = std::map<std::string, std::vector<float>>;

/// Larger models (the resnets) are compared by their gradients alone: their update is one kernel
/// over all tensors, whatever the model.
constexpr std::int64_t kUpdatedValuesMax = 1'000'000;

bool is_weight(const TensorBytes& tensor) {
    return tensor.name.starts_with("model.") && tensor.dtype == "F32" &&
           tensor.name.find("running_") == std::string::npos;
}

Values weights_of(const Learner& learner) {
    Values values;
    for (const TensorBytes& tensor : learner.state()) {
        if (!is_weight(tensor)) continue;
        std::vector<float>& out = values[tensor.name];
        out.resize(tensor.data.size() / sizeof(float));
        std::memcpy(out.data(), tensor.data.data(), tensor.data.size());
    }
    return values;
}

/// Puts `weights` into the learner, whatever its optimizer holds stays.
Result<void> set_weights(Learner& learner, const Values& weights) {
    std::vector<TensorBytes> tensors = learner.state();
    for (TensorBytes& tensor : tensors)
        if (is_weight(tensor)) tensor.data = std::as_bytes(std::span(weights.at(tensor.name)));
    TUNE_TRY(file, Safetensors::parse(write_safetensors(tensors, {})));
    return learner.load_state(file);
}

double product(const Values& a, const Values& b) {
    double sum = 0.0;
    for (const auto& [name, values] : a)
        for (std::size_t i = 0; i < values.size(); ++i)
            sum += static_cast<double>(values[i]) * static_cast<double>(b.at(name)[i]);
    return sum;
}

Values moved(const Values& from, double factor, const Values& along) {
    Values result = from;
    for (auto& [name, values] : result)
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<float>(static_cast<double>(values[i]) +
                                           factor * static_cast<double>(along.at(name)[i]));
    return result;
}

double distance(const Values& a, const Values& b) {
    double largest = 0.0;
    for (const auto& [name, values] : a)
        for (std::size_t i = 0; i < values.size(); ++i)
            largest = std::max(largest, static_cast<double>(std::abs(values[i] - b.at(name)[i])));
    return largest;
}

/// A learner that steps by plain gradient descent: what it changes is the gradient.
Result<std::unique_ptr<Learner>> descent(const Example& example) {
    TrainConfig config = example.config;
    config.optimizer = OptimizerKind::kSgd;
    config.momentum = 0.0;
    config.weight_decay = 0.0;
    return Learner::make(config, example.inputs);
}

Result<Values> gradient_at(Learner& plain, const Example& example, const Values& weights) {
    constexpr double kRate = 1.0;
    TUNE_TRY_VOID(set_weights(plain, weights));
    TUNE_TRY_VOID(plain.train(example.samples, 0, kRate));
    Values gradient = weights_of(plain);
    for (auto& [name, values] : gradient)
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = weights.at(name)[i] - values[i];
    return gradient;
}

Result<double> loss_at(Learner& plain, const Example& example, const Values& weights) {
    TUNE_TRY_VOID(set_weights(plain, weights));
    TUNE_TRY(loss, plain.train(example.samples, 0, 1e-12));
    return static_cast<double>(loss);
}

/// Whether the loss changes along the gradient as the gradient says.
Result<std::string> compare_gradient(const Example& example) {
    TUNE_TRY(plain, descent(example));
    const Values weights = weights_of(*plain);
    TUNE_TRY(gradient, gradient_at(*plain, example, weights));
    const double length = std::sqrt(product(gradient, gradient));
    // float32 losses: a step that changes them by about a thousandth.
    const double step = 2e-3 / std::max(length, 1e-3);
    TUNE_TRY(above, loss_at(*plain, example, moved(weights, step / length, gradient)));
    TUNE_TRY(below, loss_at(*plain, example, moved(weights, -step / length, gradient)));
    const double slope = (above - below) / (2.0 * step);
    // The more float32 weights there are, the more of so short a step is rounded away.
    const double tolerance = plain->parameter_count() > kUpdatedValuesMax ? 0.25 : 0.03;
    if (std::abs(slope - length) <= tolerance * length) return std::string();
    return "the gradient is " + std::to_string(length) + " long, the loss says " +
           std::to_string(slope);
}

/// One parameter's place in an optimizer, by its published rule.
struct Moments {
    double first = 0.0;
    double second = 0.0;
};

double updated(const TrainConfig& config, double weight, double gradient, Moments& moments,
               int step, double lr) {
    if (config.optimizer == OptimizerKind::kSgd) {  // Sutskever et al. 2013, as torch.optim.SGD
        moments.first = step == 1 ? gradient : config.momentum * moments.first + gradient;
        return weight - lr * moments.first;
    }
    // Loshchilov and Hutter 2019, algorithm 2.
    moments.first = config.beta1 * moments.first + (1.0 - config.beta1) * gradient;
    moments.second = config.beta2 * moments.second + (1.0 - config.beta2) * gradient * gradient;
    const double first = moments.first / (1.0 - std::pow(config.beta1, step));
    const double second = moments.second / (1.0 - std::pow(config.beta2, step));
    return weight - lr * config.weight_decay.value_or(0.01) * weight -
           lr * first / (std::sqrt(second) + config.eps);
}

/// Whether three steps of the optimizer are what its rule makes of the gradients.
Result<std::string> compare_optimizer(const Example& example) {
    constexpr double kRate = 1e-2;
    TUNE_TRY(plain, descent(example));
    TUNE_TRY(learner, Learner::make(example.config, example.inputs));
    if (learner->parameter_count() > kUpdatedValuesMax) return std::string();
    std::map<std::string, std::vector<Moments>> moments;
    for (int step = 1; step <= 3; ++step) {
        const Values before = weights_of(*learner);
        TUNE_TRY(gradient, gradient_at(*plain, example, before));
        Values expected = before;
        for (auto& [name, values] : expected) {
            std::vector<Moments>& of_tensor = moments[name];
            of_tensor.resize(values.size());
            for (std::size_t i = 0; i < values.size(); ++i)
                values[i] = static_cast<float>(
                    updated(example.config, static_cast<double>(values[i]),
                            static_cast<double>(gradient.at(name)[i]), of_tensor[i], step, kRate));
        }
        TUNE_TRY_VOID(learner->train(example.samples, step - 1, kRate));
        const double largest = distance(weights_of(*learner), expected);
        if (largest > 0.05 * kRate)
            return "after step " + std::to_string(step) + " weights differ by " +
                   std::to_string(largest);
    }
    return std::string();
}

/// Whether a GPU takes the same steps as the CPU.
Result<std::string> compare_with_cpu(const Example& example, Device& device) {
    TUNE_TRY(here, Learner::make(example.config, example.inputs));
    TUNE_TRY(there, Learner::make(example.config, example.inputs, nullptr, &device));
    for (int step = 0; step < 5; ++step) {
        TUNE_TRY(loss, here->train(example.samples, step, 1e-3));
        TUNE_TRY(other, there->train(example.samples, step, 1e-3));
        if (!(std::abs(loss - other) <= 1e-2f * std::max(1.0f, std::abs(loss))))
            return "the loss of step " + std::to_string(step) + " is " + std::to_string(other) +
                   ", on the CPU " + std::to_string(loss);
    }
    return std::string();
}

}  // namespace

Result<CheckResult> check_models(const CheckContext& context) {
    std::unique_ptr<Device> device;
    if (context.cuda) {
        TUNE_TRY(opened, open_device(DeviceKind::kCuda, 0));
        device = std::move(opened);
    }
    const std::string module = context.folder + "/module.pt";
    TUNE_TRY_VOID(write_example_module(module));
    std::string names;
    int count = 0;
    for (const std::string& model : model_names()) {
        std::optional<Example> example = example_of(model, module);
        if (!example) return check_failed("there is no example of " + model);
        names += (names.empty() ? "" : ", ") + model;
        for (const OptimizerKind optimizer : {OptimizerKind::kAdamW, OptimizerKind::kSgd}) {
            example->config.optimizer = optimizer;
            // Gradients that are next to nothing have a sign by chance, which is all that AdamW
            // looks at unless eps is larger.
            example->config.eps = 1e-3;
            const std::string what =
                model + (optimizer == OptimizerKind::kSgd ? " with sgd: " : " with adamw: ");
            std::string wrong;
            if (device) {
                TUNE_TRY(difference, compare_with_cpu(*example, *device));
                wrong = difference;
            } else {
                if (optimizer == OptimizerKind::kAdamW) {  // the gradient is that of both
                    TUNE_TRY(in_gradient, compare_gradient(*example));
                    wrong = in_gradient;
                }
                if (wrong.empty()) {
                    TUNE_TRY(in_update, compare_optimizer(*example));
                    wrong = in_update;
                }
            }
            if (!wrong.empty()) return check_failed(what + wrong);
            ++count;
        }
    }
    return check_ok(names + (context.cuda ? ": as on the CPU" : ": as differences and rules say"),
                    count, "pairs");
}

Result<CheckResult> check_data_wait(const CheckContext& context) {
    using Steady = std::chrono::steady_clock;
    constexpr std::int64_t kBatch = 64;
    TUNE_TRY_VOID(write_example_data(context.folder + "/data", 20'000));
    std::unique_ptr<Device> device;
    if (context.cuda) {
        TUNE_TRY(opened, open_device(DeviceKind::kCuda, 0));
        device = std::move(opened);
    }
    Example example = *example_of("cnn");
    TUNE_TRY(learner, Learner::make(example.config, example.inputs, nullptr, device.get()));
    loader::DatasetOptions options;
    options.directory = context.folder + "/data";
    options.split = "train";
    options.batch_size = kBatch;
    options.shuffle = true;
    options.threads = 1;
    TUNE_TRY(data, loader::Dataset::open(std::move(options)));
    loader::Batch batch;
    Steady::duration waited{};
    Steady::time_point begin = Steady::now();
    std::int64_t steps = 0;
    while (true) {
        const Steady::time_point asked = Steady::now();
        TUNE_TRY(more, data->next(batch));
        if (steps > 0) waited += Steady::now() - asked;  // the first one opens files
        if (!more) break;
        if (steps == 0) begin = Steady::now();
        TUNE_TRY_VOID(read_samples(example.inputs, batch, example.samples));
        TUNE_TRY_VOID(learner->train(example.samples, steps, 1e-3));
        ++steps;
    }
    const std::chrono::duration<double> taken = Steady::now() - begin;
    const double part = std::chrono::duration<double>(waited).count() / taken.count();
    return check_ok("of " + std::to_string(steps) + " steps' time waited for the loader",
                    100.0 * part, "%");
}

}  // namespace tune::train
