// Calls LibTorch's fused kernels, which update all parameters in one pass with the arithmetic of
// torch.optim. The step number is passed in, not counted, so that a restored optimizer continues
// with the right bias correction.

#include "worker/train/optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <numeric>

namespace tune::train {
namespace {

using Tensors = std::vector<at::Tensor>;

Tensors tensors_of(const std::vector<NamedTensor>& parameters) {
    Tensors tensors;
    for (const NamedTensor& parameter : parameters) tensors.push_back(parameter.tensor);
    return tensors;
}

Tensors zeros_of(const std::vector<NamedTensor>& parameters) {
    Tensors tensors;
    for (const NamedTensor& parameter : parameters)
        tensors.push_back(at::zeros_like(parameter.tensor.detach()));
    return tensors;
}

void add_named(std::vector<NamedTensor>& out, const std::vector<NamedTensor>& parameters,
               const Tensors& tensors, const char* kind) {
    for (std::size_t i = 0; i < tensors.size(); ++i)
        out.push_back({parameters[i].name + "." + kind, tensors[i]});
}

/// Keeps groups; what each has besides its parameters is the kind's own.
class Grouped : public Optimizer {
public:
    explicit Grouped(const std::vector<NamedTensor>& parameters)
        : named_(parameters), parameters_(tensors_of(parameters)) {}

    const std::vector<ParameterGroup>& groups() const override { return groups_; }

    void set_groups(std::vector<ParameterGroup> groups) override {
        groups_ = std::move(groups);
        regroup();
    }

    void prepare(std::int64_t step, double lr) override {
        step_ = step;
        lr_ = lr;
    }

    void apply(const Tensors& gradients, const at::Tensor& found_inf) override {
        const at::NoGradGuard no_grad;
        if (groups_.size() == 1) return apply_group(0, gradients, found_inf);
        std::size_t place = 0;
        for (std::size_t i = 0; i < groups_.size(); ++i) {
            const auto begin = gradients.begin() + static_cast<std::ptrdiff_t>(place);
            place += groups_[i].members.size();
            const Tensors own(begin, gradients.begin() + static_cast<std::ptrdiff_t>(place));
            if (!own.empty()) apply_group(i, own, found_inf);
        }
    }

protected:
    virtual void regroup() = 0;
    virtual void apply_group(std::size_t group, const Tensors& gradients,
                             const at::Tensor& found_inf) = 0;

    void put_all_into_one_group() {
        ParameterGroup all;
        all.members.resize(parameters_.size());
        std::iota(all.members.begin(), all.members.end(), std::size_t{0});
        set_groups({std::move(all)});
    }

    [[nodiscard]] Tensors members(std::size_t group, const Tensors& all) const {
        Tensors tensors;
        if (all.empty()) return tensors;
        for (const std::size_t member : groups_[group].members) tensors.push_back(all[member]);
        return tensors;
    }

    [[nodiscard]] static std::optional<at::Tensor> optional(const at::Tensor& tensor) {
        return tensor.defined() ? std::optional<at::Tensor>(tensor) : std::nullopt;
    }

    const std::vector<NamedTensor> named_;
    const Tensors parameters_;
    std::vector<ParameterGroup> groups_;
    std::int64_t step_ = 0;
    double lr_ = 0.0;
};

class AdamW final : public Grouped {
public:
    AdamW(const TrainConfig& config, const std::vector<NamedTensor>& parameters)
        : Grouped(parameters),
          config_(config),
          settings_(adam_settings(config)),
          averages_(zeros_of(parameters)),
          squares_(zeros_of(parameters)) {
        if (config.precision == Precision::kFloat16) skipped_ = at::zeros(count(), options());
        put_all_into_one_group();
    }

    void prepare(std::int64_t step, double lr) override {
        Grouped::prepare(step, lr);
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            at::Tensor& steps = parts_[i].steps.front();
            const auto value = static_cast<float>(step + 1 - groups_[i].first_step);
            if (steps.is_cpu())
                *steps.mutable_data_ptr<float>() = value;
            else
                steps.fill_(value);
            if (skipped_.defined() && !groups_[i].members.empty())
                steps.sub_(
                    skipped_.select(0, static_cast<std::int64_t>(groups_[i].members.front())));
        }
    }

    void apply(const Tensors& gradients, const at::Tensor& found_inf) override {
        Grouped::apply(gradients, found_inf);
        if (!found_inf.defined()) return;
        // A step that is left out does not count for the corrections.
        const at::NoGradGuard no_grad;
        if (!skipped_.defined()) skipped_ = at::zeros(count(), options());
        skipped_.add_(at::mul(updated_, found_inf.reshape({})));
    }

    std::vector<NamedTensor> state() const override {
        std::vector<NamedTensor> state;
        add_named(state, named_, averages_, "exp_avg");
        add_named(state, named_, squares_, "exp_avg_sq");
        if (config_.precision == Precision::kFloat16) state.push_back({kSkippedSteps, skipped_});
        return state;
    }

private:
    struct Part {
        Tensors parameters;
        Tensors averages;
        Tensors squares;
        Tensors steps;  ///< the kernel only reads the count, so all parameters share one
    };

    void regroup() override {
        parts_.clear();
        at::Tensor updated = at::zeros(count(), at::kFloat);
        for (std::size_t i = 0; i < groups_.size(); ++i) {
            const std::size_t size = groups_[i].members.size();
            const at::Tensor step =
                at::empty({}, size == 0 ? at::TensorOptions(at::kFloat) : options());
            parts_.push_back({members(i, parameters_), members(i, averages_), members(i, squares_),
                              Tensors(std::max<std::size_t>(size, 1), step)});
            for (const std::size_t member : groups_[i].members)
                updated.mutable_data_ptr<float>()[member] = 1.0f;
        }
        updated_ = updated.to(options().device());
    }

    [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(named_.size()); }
    [[nodiscard]] at::TensorOptions options() const {
        return averages_.empty() ? at::TensorOptions(at::kFloat)
                                 : averages_.front().options().dtype(at::kFloat);
    }

    void apply_group(std::size_t group, const Tensors& gradients,
                     const at::Tensor& found_inf) override {
        const Part& part = parts_[group];
        at::_fused_adamw_(part.parameters, gradients, part.averages, part.squares, {}, part.steps,
                          lr_ * groups_[group].lr_factor, settings_.beta1, settings_.beta2,
                          config_.weight_decay.value_or(0.01), settings_.eps,
                          /*amsgrad=*/false, /*maximize=*/false, /*grad_scale=*/{},
                          optional(found_inf));
    }

    const TrainConfig config_;
    const AdamSettings settings_;
    const Tensors averages_;
    const Tensors squares_;
    std::vector<Part> parts_;
    at::Tensor skipped_;  ///< [parameters] steps of each that were left out, once there can be one
    at::Tensor updated_;  ///< [parameters] 1 for those of a group
};

class Sgd final : public Grouped {
public:
    Sgd(const TrainConfig& config, const std::vector<NamedTensor>& parameters)
        : Grouped(parameters), config_(config) {
        if (config.momentum > 0.0) momenta_ = zeros_of(parameters);
        put_all_into_one_group();
    }

    std::vector<NamedTensor> state() const override {
        std::vector<NamedTensor> state;
        add_named(state, named_, momenta_, "momentum_buffer");
        return state;
    }

private:
    struct Part {
        Tensors parameters;
        Tensors momenta;
    };

    void regroup() override {
        parts_.clear();
        for (std::size_t i = 0; i < groups_.size(); ++i)
            parts_.push_back({members(i, parameters_), members(i, momenta_)});
    }

    void apply_group(std::size_t group, const Tensors& gradients,
                     const at::Tensor& found_inf) override {
        const Part& part = parts_[group];
        // A first step that is left out would leave the momenta unset.
        const bool is_first = step_ == groups_[group].first_step && !found_inf.defined();
        at::_fused_sgd_(part.parameters, gradients, part.momenta,
                        config_.weight_decay.value_or(0.0), config_.momentum,
                        lr_ * groups_[group].lr_factor, /*dampening=*/0.0, config_.nesterov,
                        /*maximize=*/false, is_first, /*grad_scale=*/{}, optional(found_inf));
    }

    const TrainConfig config_;
    Tensors momenta_;
    std::vector<Part> parts_;
};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const TrainConfig& config,
                                          const std::vector<NamedTensor>& parameters) {
    if (config.optimizer == OptimizerKind::kSgd) return std::make_unique<Sgd>(config, parameters);
    return std::make_unique<AdamW>(config, parameters);
}

}  // namespace tune::train
