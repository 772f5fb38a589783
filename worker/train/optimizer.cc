// Calls LibTorch's fused kernels, which update all parameters in one pass with the arithmetic of
// torch.optim. The step number is passed in, not counted, so that a restored optimizer continues
// with the right bias correction.

#include "worker/train/optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

namespace tune::train {
namespace {

std::vector<at::Tensor> tensors_of(const std::vector<NamedTensor>& parameters) {
    std::vector<at::Tensor> tensors;
    for (const NamedTensor& parameter : parameters) tensors.push_back(parameter.tensor);
    return tensors;
}

std::vector<at::Tensor> zeros_of(const std::vector<NamedTensor>& parameters) {
    std::vector<at::Tensor> tensors;
    for (const NamedTensor& parameter : parameters)
        tensors.push_back(at::zeros_like(parameter.tensor.detach()));
    return tensors;
}

void add_named(std::vector<NamedTensor>& out, const std::vector<NamedTensor>& parameters,
               const std::vector<at::Tensor>& tensors, const char* kind) {
    for (std::size_t i = 0; i < tensors.size(); ++i)
        out.push_back({parameters[i].name + "." + kind, tensors[i]});
}

class AdamW final : public Optimizer {
public:
    AdamW(const TrainConfig& config, const std::vector<NamedTensor>& parameters)
        : config_(config),
          named_(parameters),
          parameters_(tensors_of(parameters)),
          averages_(zeros_of(parameters)),
          squares_(zeros_of(parameters)),
          // The kernel only reads the step count, so all parameters share one.
          steps_(parameters.size(), at::empty({}, at::kFloat)) {}

    void step(at::TensorList gradients, std::int64_t step, double lr) override {
        const at::NoGradGuard no_grad;
        *steps_.front().mutable_data_ptr<float>() = static_cast<float>(step + 1);
        at::_fused_adamw_(parameters_, gradients, averages_, squares_, {}, steps_, lr,
                          config_.beta1, config_.beta2, config_.weight_decay.value_or(0.01),
                          config_.eps,
                          /*amsgrad=*/false, /*maximize=*/false);
    }

    std::vector<NamedTensor> state() const override {
        std::vector<NamedTensor> state;
        add_named(state, named_, averages_, "exp_avg");
        add_named(state, named_, squares_, "exp_avg_sq");
        return state;
    }

private:
    const TrainConfig config_;
    const std::vector<NamedTensor> named_;
    const std::vector<at::Tensor> parameters_;
    const std::vector<at::Tensor> averages_;
    const std::vector<at::Tensor> squares_;
    const std::vector<at::Tensor> steps_;
};

class Sgd final : public Optimizer {
public:
    Sgd(const TrainConfig& config, const std::vector<NamedTensor>& parameters)
        : config_(config), named_(parameters), parameters_(tensors_of(parameters)) {
        if (config.momentum > 0.0) momenta_ = zeros_of(parameters);
    }

    void step(at::TensorList gradients, std::int64_t step, double lr) override {
        const at::NoGradGuard no_grad;
        at::_fused_sgd_(parameters_, gradients, momenta_, config_.weight_decay.value_or(0.0),
                        config_.momentum, lr, /*dampening=*/0.0, config_.nesterov,
                        /*maximize=*/false,
                        /*is_first_step=*/step == 0);
    }

    std::vector<NamedTensor> state() const override {
        std::vector<NamedTensor> state;
        add_named(state, named_, momenta_, "momentum_buffer");
        return state;
    }

private:
    const TrainConfig config_;
    const std::vector<NamedTensor> named_;
    const std::vector<at::Tensor> parameters_;
    std::vector<at::Tensor> momenta_;
};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const TrainConfig& config,
                                          const std::vector<NamedTensor>& parameters) {
    if (config.optimizer == OptimizerKind::kSgd) return std::make_unique<Sgd>(config, parameters);
    return std::make_unique<AdamW>(config, parameters);
}

}  // namespace tune::train
