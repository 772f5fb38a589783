#pragma once
// The learning rate of each step: scaled with the batch size, warmed up, scheduled. Pure functions.

#include <cstdint>

namespace tune::train {

enum class LrScaling { kSqrt, kLinear, kNone, kAdamSde };
enum class LrSchedule { kConstant, kCosine, kLinear, kStep, kOneCycle };

/// lr of a batch of `batch_size` when `lr` was chosen for `base_batch_size`; k is their ratio.
///   sqrt:   lr * sqrt(k)  keeps the variance of an update (Krizhevsky 2014, arXiv:1404.5997) and
///           the path of adaptive methods (Malladi et al. 2022, arXiv:2205.10287)
///   linear: lr * k        for SGD with momentum (Goyal et al. 2017, arXiv:1706.02677); wants a
///           warm-up and holds below the critical batch size only
///   adam_sde: as sqrt, and the rest of AdamW follows; see scaled_adam()
///   none:   lr
/// Both sizes > 0.
[[nodiscard]] double scaled_lr(double lr, LrScaling scaling, std::int64_t batch_size,
                               std::int64_t base_batch_size);

/// What AdamW remembers a gradient by, and what keeps it from dividing by 0.
struct AdamSettings {
    double beta1 = 0.9;
    double beta2 = 0.999;
    double eps = 1e-8;
    bool is_clamped = false;  ///< k was too large for a beta, which is 0 then
};

/// The settings that, with the rate of adam_sde, let a batch k times as large follow the same
/// stochastic differential equation: 1 - beta -> k (1 - beta), eps -> eps / sqrt(k). Holds while
/// gradients are mostly noise. Source: Malladi et al. 2022, arXiv:2205.10287, definition 5.2.
[[nodiscard]] AdamSettings scaled_adam(const AdamSettings& settings, double k);

/// The whole rule. A value; thread-safe.
struct LearningRate {
    double base = 0.0;       ///< as given, for base_batch_size
    double effective = 0.0;  ///< after scaling
    LrSchedule schedule = LrSchedule::kConstant;
    std::int64_t warmup_steps = 0;
    std::int64_t total_steps = 1;
    double floor = 0.0;           ///< part of `effective` at which cosine and linear end
    std::int64_t step_steps = 1;  ///< kStep: steps between drops, counted from the first one
    double step_factor = 0.1;     ///< kStep: what a drop multiplies the rate by

    /// The rate of optimizer step `step` (0 is the first). Warm-up is linear and reaches
    /// `effective` at its last step: effective * (step + 1) / warmup_steps. After it, cosine falls
    /// from `effective` to 0 at total_steps: effective * (1 + cos(pi * t)) / 2 with t the part of
    /// the steps after warm-up that is over; linear falls by the same part. Both end at `floor`.
    /// one-cycle is torch's OneCycleLR with its defaults: a cosine from effective / 25 up to
    /// `effective` in the first 30 % of the steps, and one from there down to effective / 250,000;
    /// it takes no warm-up. Steps beyond total_steps get the last value.
    [[nodiscard]] double at(std::int64_t step) const;
};

}  // namespace tune::train
