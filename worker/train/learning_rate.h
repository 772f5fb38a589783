#pragma once
// The learning rate of each step: scaled with the batch size, warmed up, scheduled. Pure functions.

#include <cstdint>

namespace tune::train {

enum class LrScaling { kSqrt, kLinear, kNone };
enum class LrSchedule { kConstant, kCosine };

/// lr of a batch of `batch_size` when `lr` was chosen for `base_batch_size`; k is their ratio.
///   sqrt:   lr * sqrt(k)  keeps the variance of an update (Krizhevsky 2014, arXiv:1404.5997) and
///           the path of adaptive methods (Malladi et al. 2022, arXiv:2205.10287)
///   linear: lr * k        for SGD with momentum (Goyal et al. 2017, arXiv:1706.02677); wants a
///           warm-up and holds below the critical batch size only
///   none:   lr
/// Both sizes > 0.
[[nodiscard]] double scaled_lr(double lr, LrScaling scaling, std::int64_t batch_size,
                               std::int64_t base_batch_size);

/// The whole rule. A value; thread-safe.
struct LearningRate {
    double base = 0.0;       ///< as given, for base_batch_size
    double effective = 0.0;  ///< after scaling
    LrSchedule schedule = LrSchedule::kConstant;
    std::int64_t warmup_steps = 0;
    std::int64_t total_steps = 1;

    /// The rate of optimizer step `step` (0 is the first). Warm-up is linear and reaches
    /// `effective` at its last step: effective * (step + 1) / warmup_steps. After it, cosine falls
    /// from `effective` to 0 at total_steps: effective * (1 + cos(pi * t)) / 2 with t the part of
    /// the steps after warm-up that is over. Steps beyond total_steps get the last value.
    [[nodiscard]] double at(std::int64_t step) const;
};

}  // namespace tune::train
