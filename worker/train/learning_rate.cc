// Rates are functions of the step's number alone, so nothing about them is kept in checkpoints.

#include "worker/train/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tune::train {

double scaled_lr(double lr, LrScaling scaling, std::int64_t batch_size,
                 std::int64_t base_batch_size) {
    const double k = static_cast<double>(batch_size) / static_cast<double>(base_batch_size);
    switch (scaling) {
        case LrScaling::kSqrt:
        case LrScaling::kAdamSde: return lr * std::sqrt(k);
        case LrScaling::kLinear: return lr * k;
        case LrScaling::kNone: return lr;
    }
    return lr;
}

AdamSettings scaled_adam(const AdamSettings& settings, double k) {
    const auto scaled = [k](double beta) { return std::max(0.0, 1.0 - k * (1.0 - beta)); };
    return {.beta1 = scaled(settings.beta1),
            .beta2 = scaled(settings.beta2),
            .eps = settings.eps / std::sqrt(k),
            .is_clamped = k * (1.0 - settings.beta1) >= 1.0 || k * (1.0 - settings.beta2) >= 1.0};
}

namespace {

/// From `begin` (part 0) to `end` (part 1) along half a cosine.
double cosine_between(double begin, double end, double part) {
    return end + (begin - end) / 2.0 * (1.0 + std::cos(std::numbers::pi * part));
}

double one_cycle(double peak, double step, double total) {
    const double first = peak / 25.0;
    const double last = first / 1e4;
    const double top = 0.3 * total - 1.0;
    if (step <= top) return cosine_between(first, peak, step / top);
    return cosine_between(peak, last, std::min(1.0, (step - top) / (total - 1.0 - top)));
}

}  // namespace

double LearningRate::at(std::int64_t step) const {
    if (step < warmup_steps)
        return effective * static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
    if (schedule == LrSchedule::kConstant) return effective;
    if (schedule == LrSchedule::kStep)
        return effective * std::pow(step_factor, static_cast<double>(step / step_steps));
    if (schedule == LrSchedule::kOneCycle)
        return one_cycle(effective, static_cast<double>(step), static_cast<double>(total_steps));
    const std::int64_t after = std::max<std::int64_t>(total_steps - warmup_steps, 1);
    const double part =
        std::min(1.0, static_cast<double>(step - warmup_steps) / static_cast<double>(after));
    const double left = schedule == LrSchedule::kLinear
                            ? 1.0 - part
                            : 0.5 * (1.0 + std::cos(std::numbers::pi * part));
    return effective * (floor + (1.0 - floor) * left);
}

}  // namespace tune::train
