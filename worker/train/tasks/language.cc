// The next token of every place is a class of its own.

#include <ATen/ops/cross_entropy_loss.h>

#include "worker/train/tasks/task.h"

namespace tune::train {
namespace {

class Language final : public Task {
public:
    explicit Language(double smoothing) : smoothing_(smoothing) {}

    at::Tensor loss(const at::Tensor& output, const at::Tensor& target) const override {
        return at::cross_entropy_loss(output.reshape({-1, output.size(-1)}), target.reshape({-1}),
                                      /*weight=*/{}, /*reduction=*/1, /*ignore_index=*/-100,
                                      smoothing_);
    }

    void measure(const at::Tensor& output, const at::Tensor& target,
                 Evaluation& sums) const override {
        count_correct(output, target, sums);
    }

private:
    double smoothing_;
};

}  // namespace

std::unique_ptr<Task> make_language(const TrainConfig& config) {
    return std::make_unique<Language>(config.label_smoothing);
}

}  // namespace tune::train
