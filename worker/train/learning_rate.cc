#include "worker/train/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tune::train {

double scaled_lr(double lr, LrScaling scaling, std::int64_t batch_size,
                 std::int64_t base_batch_size) {
    const double k = static_cast<double>(batch_size) / static_cast<double>(base_batch_size);
    switch (scaling) {
        case LrScaling::kSqrt: return lr * std::sqrt(k);
        case LrScaling::kLinear: return lr * k;
        case LrScaling::kNone: return lr;
    }
    return lr;
}

double LearningRate::at(std::int64_t step) const {
    if (step < warmup_steps)
        return effective * static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
    if (schedule == LrSchedule::kConstant) return effective;
    const std::int64_t after = std::max<std::int64_t>(total_steps - warmup_steps, 1);
    const double part =
        std::min(1.0, static_cast<double>(step - warmup_steps) / static_cast<double>(after));
    return effective * 0.5 * (1.0 + std::cos(std::numbers::pi * part));
}

}  // namespace tune::train
