// A module that the user made in Python (torch.jit.script or trace). Its parameters are trained and
// its buffers kept under their own names. What it draws at random comes from LibTorch's own
// generator, which is set by (seed, step) before each training step, so that a resumed run draws
// what the interrupted one would have drawn.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>

#include "worker/train/models/model.h"
#include "worker/train/philox.h"

namespace tune::train {
namespace {

/// Purpose of the generator's seeds; see layers.cc for the others.
constexpr std::uint32_t kGeneratorPurpose = 1u << 17;

class TorchScript final : public Model {
public:
    TorchScript(const TrainConfig& config, const Inputs& inputs, torch::jit::Module module)
        : Model(config),
          module_(std::move(module)),
          shape_(inputs.shape),
          is_tokens_(inputs.is_tokens()) {
        for (const auto& parameter : module_.named_parameters())
            weights_.add_parameter(parameter.name, aligned(parameter.value));
        for (const auto& buffer : module_.named_buffers())
            weights_.add_buffer(buffer.name, aligned(buffer.value));
        python_source_ = "torch.jit.load(" +
                         to_text(Json(std::filesystem::path(config.module).filename())) + ")";
    }

    at::Tensor forward(const at::Tensor& x, const Pass& pass) const override {
        if (pass.training != module_.is_training()) module_.train(pass.training);
        return module_.forward({is_tokens_ ? x : shaped(x)}).toTensor();
    }

private:
    /// The same tensor in memory of the allocator: where a file's reader put it, it may lie
    /// elsewhere in a cache line in each process, and sums then differ in their last bits.
    static at::Tensor aligned(at::Tensor tensor) {
        tensor.set_data(tensor.detach().clone());
        return tensor;
    }

    /// As stored, except that the channels of an image come first.
    at::Tensor shaped(const at::Tensor& x) const {
        std::vector<std::int64_t> sizes = {x.size(0)};
        sizes.insert(sizes.end(), shape_.begin(), shape_.end());
        const at::Tensor h = x.view(sizes);
        const bool last =
            shape_.size() == 3 && (shape_[2] == 1 || shape_[2] == 3 || shape_[2] == 4);
        return last ? h.permute({0, 3, 1, 2}) : h;
    }

public:
    void before_pass(const Pass& pass, at::Device device) const override {
        const auto numbers = philox4x32(
            {static_cast<std::uint32_t>(pass.first_row), 0, kGeneratorPurpose,
             static_cast<std::uint32_t>(pass.step)},
            {static_cast<std::uint32_t>(pass.seed), static_cast<std::uint32_t>(pass.seed >> 32)});
        set_generator(at::detail::getDefaultCPUGenerator(), numbers[0]);
        if (!device.is_cpu())
            set_generator(at::globalContext().defaultGenerator(device), numbers[1]);
    }

private:
    static void set_generator(at::Generator generator, std::uint32_t seed) {
        const std::lock_guard lock(generator.mutex());
        generator.set_current_seed(seed);
    }

    mutable torch::jit::Module module_;
    std::vector<std::int64_t> shape_;
    bool is_tokens_;
};

Error not_a_module(const std::string& path, const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    return invalid_parameter(
        "'" + path + "' is not a TorchScript module, as torch.jit.script(model).save(...) " +
        "writes it: " + text.substr(0, text.find('\n')));
}

}  // namespace

Result<std::vector<NamedTensor>> read_torchscript(const std::string& path) {
    try {
        const torch::jit::Module module = torch::jit::load(path, c10::kCPU);
        std::vector<NamedTensor> tensors;
        for (const auto& each : module.named_parameters())
            tensors.push_back({each.name, each.value.detach()});
        for (const auto& each : module.named_buffers()) tensors.push_back({each.name, each.value});
        return tensors;
    } catch (const c10::Error& error) {
        return not_a_module(path, error);
    }
}

Result<std::unique_ptr<Model>> make_torchscript(const TrainConfig& config, const Inputs& inputs) {
    const std::string& path = config.module;
    if (path.ends_with(".pt2"))
        return invalid_parameter(
            "module: '" + path +
            "' is a file of torch.export, which LibTorch can run but not train (its only "
            "loader in C++ is for compiled inference); save the module with "
            "torch.jit.script(model).save(\"model.pt\") instead");
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored))
        return invalid_parameter("module: there is no file '" + path + "'");
    try {
        torch::jit::Module module = torch::jit::load(path, c10::kCPU);
        auto model = std::make_unique<TorchScript>(config, inputs, std::move(module));
        if (model->parameters().empty())
            return invalid_parameter("module: '" + path + "' has no parameters to train");
        return std::unique_ptr<Model>(std::move(model));
    } catch (const c10::Error& error) {
        const std::string text = error.what_without_backtrace();
        return invalid_parameter(
            "module: '" + path + "' is not a TorchScript module, as " +
            "torch.jit.script(model).save(...) writes it: " + text.substr(0, text.find('\n')));
    }
}

}  // namespace tune::train
