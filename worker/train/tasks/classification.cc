#include <ATen/ops/cross_entropy_loss.h>

#include "worker/train/tasks/task.h"

namespace tune::train {
namespace {

class Classification final : public Task {
public:
    explicit Classification(double smoothing) : smoothing_(smoothing) {}

    at::Tensor loss(const at::Tensor& output, const at::Tensor& target) const override {
        return at::cross_entropy_loss(output, target, /*weight=*/{}, /*reduction=*/1,
                                      /*ignore_index=*/-100, smoothing_);
    }

    void measure(const at::Tensor& output, const at::Tensor& target,
                 Evaluation& sums) const override {
        count_correct(output, target, sums);
    }

private:
    double smoothing_;
};

}  // namespace

std::unique_ptr<Task> make_classification(const TrainConfig& config) {
    return std::make_unique<Classification>(config.label_smoothing);
}

}  // namespace tune::train
