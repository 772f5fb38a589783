#pragma once
// What a model is trained for: a loss, and what validation counts. LibTorch inside.

#include <ATen/core/Tensor.h>

#include <memory>

#include "worker/train/config/config.h"
#include "worker/train/inputs.h"
#include "worker/train/tasks/metrics.h"

namespace tune::train {

class Task {
public:
    virtual ~Task() = default;

    /// Mean over the batch, a float32 scalar. `output` is the model's, float32; `target` has
    ///   classification  [batch] int64
    ///   values          [batch, 1] float32, standardised; with bce, probabilities
    ///   language        [batch, places] int64: the next token of each place
    [[nodiscard]] virtual at::Tensor loss(const at::Tensor& output,
                                          const at::Tensor& target) const = 0;

    /// Adds everything but loss and count. Both on the CPU and contiguous.
    virtual void measure(const at::Tensor& output, const at::Tensor& target,
                         Evaluation& sums) const = 0;
};

/// `inputs` tells classes, values and tokens apart. Never fails.
[[nodiscard]] std::unique_ptr<Task> make_task(const TrainConfig& config, const Inputs& inputs);
[[nodiscard]] std::unique_ptr<Task> make_classification(const TrainConfig& config);
[[nodiscard]] std::unique_ptr<Task> make_regression(const TrainConfig& config,
                                                    const Inputs& inputs);
[[nodiscard]] std::unique_ptr<Task> make_language(const TrainConfig& config);

/// Adds to correct and correct5; `scores` [rows, choices] float32, `right` [rows] int64.
void count_correct(const at::Tensor& scores, const at::Tensor& right, Evaluation& sums);

}  // namespace tune::train
