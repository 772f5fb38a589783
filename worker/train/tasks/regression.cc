// Values, standardised, and probabilities.

#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/huber_loss.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>

#include <cmath>

#include "worker/train/tasks/task.h"

namespace tune::train {
namespace {

class Regression final : public Task {
public:
    Regression(LossKind loss, double huber_delta, double label_scale)
        : loss_(loss), huber_delta_(huber_delta), label_scale_(label_scale) {}

    at::Tensor loss(const at::Tensor& output, const at::Tensor& target) const override {
        if (loss_ == LossKind::kMae) return at::l1_loss(output, target);
        if (loss_ == LossKind::kHuber)
            return at::huber_loss(output, target, /*reduction=*/1, huber_delta_);
        if (loss_ == LossKind::kBce) return at::binary_cross_entropy_with_logits(output, target);
        return at::mse_loss(output, target);
    }

    void measure(const at::Tensor& output, const at::Tensor& target,
                 Evaluation& sums) const override {
        const float* values = output.const_data_ptr<float>();
        const float* right = target.const_data_ptr<float>();
        for (std::int64_t i = 0; i < target.numel(); ++i) {
            if (loss_ == LossKind::kBce) {
                sums.correct += (values[i] > 0.0f) == (right[i] > 0.5f);
                continue;
            }
            const double error =
                std::abs(static_cast<double>(values[i]) - static_cast<double>(right[i])) /
                label_scale_;
            sums.absolute_error += error;
            sums.squared_error += error * error;
        }
    }

private:
    LossKind loss_;
    double huber_delta_;
    double label_scale_;
};

}  // namespace

std::unique_ptr<Task> make_regression(const TrainConfig& config, const Inputs& inputs) {
    return std::make_unique<Regression>(config.loss, config.huber_delta, inputs.label_scale);
}

}  // namespace tune::train
