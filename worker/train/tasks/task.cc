#include "worker/train/tasks/task.h"

#include <algorithm>

namespace tune::train {

std::unique_ptr<Task> make_task(const TrainConfig& config, const Inputs& inputs) {
    if (inputs.is_language()) return make_language(config);
    if (inputs.is_classification()) return make_classification(config);
    return make_regression(config, inputs);
}

void count_correct(const at::Tensor& scores, const at::Tensor& right, Evaluation& sums) {
    const float* row = scores.const_data_ptr<float>();
    const auto* answers = right.const_data_ptr<std::int64_t>();
    const std::int64_t choices = scores.size(-1);
    for (std::int64_t i = 0; i < right.numel(); ++i, row += choices) {
        sums.correct += std::max_element(row, row + choices) - row == answers[i];
        const float own = row[answers[i]];
        sums.correct5 += std::count_if(row, row + choices, [&](float v) { return v > own; }) < 5;
    }
}

}  // namespace tune::train
