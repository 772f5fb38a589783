#include "worker/train/rules/noise_scale.h"

#include <cstdio>

namespace tune::train {

void NoiseScale::add(const NoiseSample& sample) {
    const double small = sample.small_batch;
    const double big = sample.big_batch;
    const double square = (big * sample.big_square - small * sample.small_square) / (big - small);
    const double variance = (sample.small_square - sample.big_square) / (1.0 / small - 1.0 / big);
    const double keep = state_.count == 0 ? 0.0 : kDecay;
    state_.gradient_square = keep * state_.gradient_square + (1.0 - keep) * square;
    state_.variance = keep * state_.variance + (1.0 - keep) * variance;
    ++state_.count;
}

std::optional<double> NoiseScale::value() const {
    if (state_.count == 0 || !(state_.gradient_square > 0.0)) return std::nullopt;
    // Differences of noisy numbers: an estimate below 0 means that there is next to no noise.
    return state_.variance > 0.0 ? state_.variance / state_.gradient_square : 0.0;
}

std::string noise_advice(double noise_scale, std::int64_t batch_size) {
    const double part = static_cast<double>(batch_size) / noise_scale;
    char numbers[128];
    std::snprintf(numbers, sizeof(numbers),
                  "gradient noise scale %.0f samples, batch %lld is %.2g times that: ", noise_scale,
                  static_cast<long long>(batch_size), part);
    // Steps to a goal fall as 1 + noise / batch, samples rise as 1 + batch / noise.
    if (part < 0.2) return std::string(numbers) + "twice the batch takes nearly half the steps";
    if (part <= 2.0) return std::string(numbers) + "a larger batch saves steps and costs samples";
    return std::string(numbers) + "a smaller batch reaches the same with fewer samples";
}

}  // namespace tune::train
