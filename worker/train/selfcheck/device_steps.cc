// Checks of what lies below the learner: the device, copies, precision, captured steps, the
// Reducer.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/sub.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "worker/train/collective/gradients.h"
#include "worker/train/device/device.h"
#include "worker/train/device/precision.h"
#include "worker/train/selfcheck/nvml.h"
#include "worker/train/selfcheck/steps.h"

namespace tune::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

Result<std::unique_ptr<Device>> device_of(const CheckContext& context) {
    return open_device(context.cuda ? DeviceKind::kCuda : DeviceKind::kCpu, 0);
}

/// Two layers and a target, on the device.
struct Network {
    std::vector<at::Tensor> weights;
    at::Tensor x;
    at::Tensor y;

    explicit Network(Device& device, std::int64_t width = 64) {
        const auto waves = [&](std::int64_t rows, std::int64_t columns, double pace) {
            const at::Tensor values = at::arange(rows * columns, at::kFloat).view({rows, columns});
            return at::sin(at::mul(values, pace)).to(device.torch_device());
        };
        x = waves(32, width, 0.37);
        y = waves(32, 1, 0.91);
        weights = {at::mul(waves(width, width, 0.53), 0.2), at::mul(waves(1, width, 0.71), 0.2)};
        for (at::Tensor& weight : weights) weight.requires_grad_();
    }

    [[nodiscard]] at::Tensor loss() const {
        const at::Tensor hidden = at::relu(at::linear(x, weights[0]));
        return at::mse_loss(at::linear(hidden, weights[1]).to(at::kFloat), y);
    }

    [[nodiscard]] std::vector<at::Tensor> gradients() const {
        return torch::autograd::grad({loss()}, weights);
    }
};

at::Tensor flat(const std::vector<at::Tensor>& tensors) {
    std::vector<at::Tensor> parts;
    for (const at::Tensor& tensor : tensors) parts.push_back(tensor.detach().reshape({-1}));
    return at::cat(parts).to(at::kCPU, at::kDouble);
}

double relative_difference(const at::Tensor& value, const at::Tensor& reference) {
    return at::sub(value, reference).norm().item<double>() / reference.norm().item<double>();
}

double gigabytes(std::int64_t bytes) {
    return static_cast<double>(bytes) / 1e9;
}

}  // namespace

Result<CheckResult> check_device(const CheckContext& context) {
    TUNE_TRY(device, device_of(context));
    const DeviceMemory memory = device->memory();
    if (!context.cuda)
        return check_ok("CPU; memory of this machine", gigabytes(memory.total), "GB");
    TUNE_TRY(all, nvml_devices());
    const auto found = std::find_if(all.begin(), all.end(), [&](const NvmlDevice& each) {
        return each.uuid == device->uuid();
    });
    if (found == all.end()) {
        // A slice of a GPU (MIG) has an identity of its own.
        for (const NvmlDevice& each : all)
            if (each.name == device->name())
                return check_ok(device->name() + ", a part of " + each.uuid,
                                gigabytes(memory.total), "GB");
        return check_failed("LibTorch sees " + device->name() + " (" + device->uuid() +
                            "), NVML has no such GPU");
    }
    const double ratio =
        static_cast<double>(memory.total) / static_cast<double>(found->memory_bytes);
    if (found->name != device->name() || ratio < 0.9 || ratio > 1.01)
        return check_failed("LibTorch says " + device->name() + " with " +
                            std::to_string(memory.total) + " bytes, NVML " + found->name +
                            " with " + std::to_string(found->memory_bytes));
    return check_ok(device->name() + ", NVML agrees", gigabytes(memory.total), "GB");
}

Result<CheckResult> check_copies(const CheckContext& context) {
    constexpr std::int64_t kElements = 8 << 20;
    constexpr int kCopies = 8;
    TUNE_TRY(device, device_of(context));
    std::vector<at::Tensor> sources;
    for (int i = 0; i < kCopies; ++i)
        sources.push_back(at::arange(kElements, at::kInt).mul_(i + 1));
    std::vector<at::Tensor> copies;
    copies.push_back(device->upload(sources[0]));  // pinned memory is made once
    device->synchronize();
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < kCopies; ++i) {
        // On the CPU upload() gives the tensor itself; what is measured there is memory.
        const at::Tensor there = device->upload(sources[static_cast<std::size_t>(i)]);
        copies.push_back(context.cuda ? there : there.clone());
    }
    device->synchronize();
    const double seconds = seconds_since(begin);
    for (int i = 0; i < kCopies; ++i)
        if (!at::equal(copies[static_cast<std::size_t>(i) + 1].cpu(),
                       sources[static_cast<std::size_t>(i)]))
            return check_failed("copy " + std::to_string(i) + " holds other bytes");
    return check_ok("the same bytes came back",
                    gigabytes(kCopies * kElements * std::int64_t{sizeof(std::int32_t)}) / seconds,
                    "GB/s");
}

Result<CheckResult> check_precision(const CheckContext& context) {
    TUNE_TRY(device, device_of(context));
    const Network network(*device);
    const at::DeviceType type = device->torch_device().type();
    const at::Tensor exact = flat(network.gradients());
    std::optional<Autocast> autocast(std::in_place, type, Precision::kBfloat16);
    if (at::linear(network.x, network.weights[0]).scalar_type() != at::kBFloat16)
        return check_failed("matrix products are not computed in bf16");
    const at::Tensor rough = flat(network.gradients());
    autocast.reset();
    if (at::linear(network.x, network.weights[0]).scalar_type() != at::kFloat)
        return check_failed("bf16 outlives its scope");
    const double error = relative_difference(rough, exact);
    if (error == 0.0 || !(error < 0.03))
        return check_failed("gradients in bf16 differ by " + std::to_string(100.0 * error) + " %");

    GradScaler scaler(device->torch_device(), 1024.0);
    std::vector<at::Tensor> gradients =
        torch::autograd::grad({scaler.scaled(network.loss())}, network.weights);
    scaler.unscale(gradients);
    if (relative_difference(flat(gradients), exact) > 1e-5 ||
        scaler.found_infinite().item<float>() != 0.0f)
        return check_failed("scaled gradients are not the same after unscaling");
    scaler.update();
    gradients[0].fill_(std::numeric_limits<float>::infinity());
    scaler.unscale(gradients);
    scaler.update();
    if (scaler.found_infinite().item<float>() != 1.0f || scaler.scale().item<float>() != 512.0f)
        return check_failed("a gradient without end does not halve the scale");
    return check_ok("gradients in bf16 against float32; the scale of fp16 does its work",
                    100.0 * error, "%");
}

Result<CheckResult> check_graph(const CheckContext& context) {
    if (!context.cuda) return check_skipped("steps are captured on a GPU only");
    constexpr int kSteps = 200;
    TUNE_TRY(device, device_of(context));
    Network one_by_one(*device);
    Network captured(*device);
    const auto step = [](Network& network) {
        const std::vector<at::Tensor> gradients = network.gradients();
        const at::NoGradGuard no_grad;
        for (std::size_t i = 0; i < gradients.size(); ++i)
            network.weights[i].sub_(gradients[i], 0.01);
    };
    Clock::time_point begin = Clock::now();
    for (int i = 0; i < kSteps; ++i) step(one_by_one);
    device->synchronize();
    const double eager = seconds_since(begin);
    const auto engine = device->step_engine(/*warm_up=*/3);
    begin = Clock::now();
    for (int i = 0; i < kSteps; ++i) engine->run([&] { step(captured); });
    device->synchronize();
    const double graph = seconds_since(begin);
    if (!engine->captured()) return check_failed("not captured: " + engine->why_not_captured());
    const double error = relative_difference(flat(captured.weights), flat(one_by_one.weights));
    if (!(error < 1e-5)) return check_failed("weights differ by " + std::to_string(error));
    return check_ok("as fast as steps one by one, with the same weights", eager / graph, "times");
}

Result<CheckResult> check_reducer(const CheckContext& context) {
    TUNE_TRY(device, device_of(context));
    const Network network(*device);
    const at::Tensor expected = flat(network.gradients());
    Ranks ranks;
    ranks.master_host = "127.0.0.1";  // port 0: any
    ranks.store_prefix = "selfcheck";
    TUNE_TRY(group, meet(ranks, {.timeout = std::chrono::seconds(30), .device = device.get()}));
    TUNE_TRY(shared, make_gradients(*group, network.weights, {"0.weight", "1.weight"}));
    constexpr int kSteps = 50;
    const Clock::time_point begin = Clock::now();
    std::vector<at::Tensor> gradients;
    for (int i = 0; i < kSteps; ++i) {
        TUNE_TRY(of_step, shared->backward(network.loss()));
        gradients = std::move(of_step);
    }
    device->synchronize();
    const double micros = 1e6 * seconds_since(begin) / kSteps;
    const double error = relative_difference(flat(gradients), expected);
    if (error > 1e-6) return check_failed("gradients differ by " + std::to_string(error));
    shared->accumulate(at::mul(network.loss(), 0.25));
    TUNE_TRY(parts, shared->backward(at::mul(network.loss(), 0.75)));
    if (relative_difference(flat(parts), expected) > 1e-5)
        return check_failed("gradients of a step in two parts differ");
    return check_ok(std::string("one ") + (context.cuda ? "NCCL" : "Gloo") +
                        " rank through the Reducer: the same gradients",
                    micros, "us");
}

}  // namespace tune::train
