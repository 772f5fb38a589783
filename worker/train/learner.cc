// The one place where steps and LibTorch meet. Every call is wrapped: LibTorch's exceptions become
// errors, and failed allocations are recognised by their texts, since they are plain errors there.
// Dropout and initialisation draw from (seed, step), never from LibTorch's global generator, so a
// resumed run repeats the interrupted one bit by bit.

#include "worker/train/learner.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mse_loss.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "worker/train/model.h"
#include "worker/train/optimizer.h"

namespace tune::train {
namespace {

Error out_of_memory(const std::string& detail) {
    return Error{Code::kResourceExhausted,
                 "out of memory; a smaller batch-size or width needs less. " + detail};
}

/// LibTorch reports a failed CPU allocation as a plain error with one of these texts.
bool is_out_of_memory(const std::string& text) {
    return text.find("can't allocate memory") != std::string::npos ||
           text.find("not enough memory") != std::string::npos ||
           text.find("out of memory") != std::string::npos;
}

std::string first_line(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

/// Runs `f`, which returns a Result, and turns LibTorch's exceptions into errors.
template <class F>
auto guarded(F f) -> decltype(f()) {
    try {
        return f();
    } catch (const c10::OutOfMemoryError& error) {
        return out_of_memory(first_line(error.what_without_backtrace()));
    } catch (const c10::Error& error) {
        const std::string text = error.what_without_backtrace();
        if (is_out_of_memory(text)) return out_of_memory(first_line(text));
        return Error{Code::kInternalError, "LibTorch: " + first_line(text)};
    } catch (const std::bad_alloc&) {
        return out_of_memory("");
    } catch (const std::exception& error) {
        return Error{Code::kInternalError, std::string("LibTorch: ") + error.what()};
    }
}

void set_threads(std::int64_t threads) {
    at::set_num_threads(static_cast<int>(threads));
    static const bool once = [] {
        at::set_num_interop_threads(1);  // may be called once in a process
        return true;
    }();
    static_cast<void>(once);
}

TensorBytes bytes_of(std::string name, const at::Tensor& tensor) {
    return {.name = std::move(name),
            .dtype = "F32",
            .shape = tensor.sizes().vec(),
            .data = {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}};
}

Result<void> copy_from(const Safetensors& file, const std::string& name, at::Tensor tensor) {
    const TensorBytes* stored = file.find(name);
    const auto problem = [&](const std::string& what) {
        return Error{Code::kDataLoss, "tensor '" + name + "' " + what};
    };
    if (stored == nullptr) return problem("is missing");
    if (stored->dtype != "F32" || stored->shape != tensor.sizes().vec())
        return problem("has another type or shape than the model's");
    std::memcpy(tensor.mutable_data_ptr(), stored->data.data(), stored->data.size());
    return {};
}

}  // namespace

class Learner::Impl {
public:
    Impl(const TrainConfig& config, const Inputs& inputs, std::unique_ptr<Model> model)
        : inputs_(inputs),
          seed_(static_cast<std::uint64_t>(config.seed)),
          model_(std::move(model)),
          optimizer_(make_optimizer(config, model_->parameters())) {
        for (const NamedTensor& parameter : model_->parameters())
            leaves_.push_back(parameter.tensor);
    }

    float train(const Samples& samples, std::int64_t step, double lr) {
        const at::Tensor output =
            model_->forward(features(samples), {.training = true, .seed = seed_, .step = step});
        const at::Tensor loss = loss_of(output, samples);
        // Gradients are handed over, not accumulated into .grad: no zeroing, no copy.
        std::vector<at::Tensor> gradients = torch::autograd::grad({loss}, leaves_);
        for (at::Tensor& gradient : gradients)
            if (!gradient.is_contiguous()) gradient = gradient.contiguous();
        optimizer_->step(gradients, step, lr);
        return *loss.const_data_ptr<float>();
    }

    void evaluate(const Samples& samples, Evaluation& sums) const {
        const at::NoGradGuard no_grad;
        const at::Tensor output = model_->forward(features(samples), {}).contiguous();
        const at::Tensor loss = loss_of(output, samples);
        sums.loss +=
            static_cast<double>(*loss.const_data_ptr<float>()) * static_cast<double>(samples.count);
        sums.count += samples.count;
        const float* row = output.const_data_ptr<float>();
        const std::int64_t outputs = inputs_.outputs();
        for (std::size_t i = 0; i < static_cast<std::size_t>(samples.count); ++i, row += outputs) {
            if (inputs_.is_classification())
                sums.correct += std::max_element(row, row + outputs) - row == samples.classes[i];
            else
                sums.absolute_error +=
                    std::abs(static_cast<double>(*row) - static_cast<double>(samples.values[i])) /
                    inputs_.label_scale;
        }
    }

    [[nodiscard]] const Model& model() const { return *model_; }
    [[nodiscard]] const Optimizer& optimizer() const { return *optimizer_; }

private:
    /// A view of the batch's memory.
    [[nodiscard]] at::Tensor features(const Samples& samples) const {
        return at::from_blob(const_cast<float*>(samples.features.data()),
                             {samples.count, inputs_.row_elements()}, at::kFloat);
    }

    [[nodiscard]] at::Tensor loss_of(const at::Tensor& output, const Samples& samples) const {
        if (!inputs_.is_classification())
            return at::mse_loss(output, at::from_blob(const_cast<float*>(samples.values.data()),
                                                      {samples.count, 1}, at::kFloat));
        return at::cross_entropy_loss(
            output, at::from_blob(const_cast<std::int64_t*>(samples.classes.data()),
                                  {samples.count}, at::kLong));
    }

    const Inputs inputs_;
    const std::uint64_t seed_;
    std::unique_ptr<Model> model_;
    std::unique_ptr<Optimizer> optimizer_;
    std::vector<at::Tensor> leaves_;
};

Learner::Learner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Learner::~Learner() = default;

Result<std::unique_ptr<Learner>> Learner::make(const TrainConfig& config, const Inputs& inputs) {
    return guarded([&]() -> Result<std::unique_ptr<Learner>> {
        set_threads(config.threads);
        TUNE_TRY(model, make_model(config, inputs));
        return std::unique_ptr<Learner>(
            new Learner(std::make_unique<Impl>(config, inputs, std::move(model))));
    });
}

Result<float> Learner::train(const Samples& samples, std::int64_t step, double lr) {
    return guarded([&]() -> Result<float> { return impl_->train(samples, step, lr); });
}

Result<void> Learner::evaluate(const Samples& samples, Evaluation& sums) {
    return guarded([&]() -> Result<void> {
        impl_->evaluate(samples, sums);
        return {};
    });
}

std::vector<TensorBytes> Learner::weights() const {
    std::vector<TensorBytes> list;
    for (const NamedTensor& parameter : impl_->model().parameters())
        list.push_back(bytes_of(parameter.name, parameter.tensor));
    return list;
}

std::vector<TensorBytes> Learner::state() const {
    std::vector<TensorBytes> list;
    for (const NamedTensor& parameter : impl_->model().parameters())
        list.push_back(bytes_of("model." + parameter.name, parameter.tensor));
    for (const NamedTensor& state : impl_->optimizer().state())
        list.push_back(bytes_of("optimizer." + state.name, state.tensor));
    return list;
}

Result<void> Learner::load_state(const Safetensors& file) {
    for (const NamedTensor& parameter : impl_->model().parameters())
        TUNE_TRY_VOID(copy_from(file, "model." + parameter.name, parameter.tensor));
    for (const NamedTensor& state : impl_->optimizer().state())
        TUNE_TRY_VOID(copy_from(file, "optimizer." + state.name, state.tensor));
    return {};
}

Result<void> Learner::continue_from(const Safetensors& file) {
    for (const NamedTensor& parameter : impl_->model().parameters())
        TUNE_TRY_VOID(copy_from(file, "model." + parameter.name, parameter.tensor));
    for (const NamedTensor& state : impl_->optimizer().state())
        if (file.find("optimizer." + state.name) != nullptr)
            TUNE_TRY_VOID(copy_from(file, "optimizer." + state.name, state.tensor));
    return {};
}

std::int64_t Learner::parameter_count() const {
    std::int64_t count = 0;
    for (const NamedTensor& parameter : impl_->model().parameters())
        count += parameter.tensor.numel();
    return count;
}

const std::string& Learner::python_source() const {
    return impl_->model().python_source();
}

}  // namespace tune::train
