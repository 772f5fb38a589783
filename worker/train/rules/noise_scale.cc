#include "worker/train/rules/noise_scale.h"

#include <cstdio>

namespace tune::train {
namespace {

/// Part of the memory below which twice the batch surely fits: it takes at most twice as much.
constexpr double kRoomForTwice = 0.45;
constexpr double kWaitsForData = 0.1;

}  // namespace

void NoiseScale::add(const NoiseSample& sample) {
    if (sample.parts < 2) return;
    const auto parts = static_cast<double>(sample.parts);
    const double big = sample.big_batch;
    const double small = big / parts;
    const double small_square = sample.small_square / parts;
    const double square = (big * sample.big_square - small * small_square) / (big - small);
    const double variance = (small_square - sample.big_square) / (1.0 / small - 1.0 / big);
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

namespace {

std::string advice_of_use(const DeviceUse& use) {
    char text[160];
    std::string advice;
    if (use.samples_per_s > 0.0) {
        std::snprintf(text, sizeof(text), "; %.0f samples/s", use.samples_per_s);
        advice += text;
    }
    if (use.peak_bytes > 0.0 && use.total_bytes > 0.0) {
        const double part = use.peak_bytes / use.total_bytes;
        std::snprintf(text, sizeof(text),
                      "; at most %.2g of %.3g GB were in use: twice the batch %s",
                      use.peak_bytes / 1e9, use.total_bytes / 1e9,
                      part < kRoomForTwice ? "fits" : "may not fit");
        advice += text;
    }
    if (use.wait_share > kWaitsForData) {
        std::snprintf(text, sizeof(text),
                      "; %.0f %% of the time went by waiting for data, which no batch size changes",
                      100.0 * use.wait_share);
        advice += text;
    }
    return advice;
}

}  // namespace

std::string noise_advice(double noise_scale, std::int64_t batch_size, const DeviceUse& use) {
    const double part = static_cast<double>(batch_size) / noise_scale;
    char numbers[128];
    std::snprintf(numbers, sizeof(numbers),
                  "gradient noise scale %.0f samples, batch %lld is %.2g times that: ", noise_scale,
                  static_cast<long long>(batch_size), part);
    // Steps to a goal fall as 1 + noise / batch, samples rise as 1 + batch / noise.
    const char* advice = part < 0.2    ? "twice the batch takes nearly half the steps"
                         : part <= 2.0 ? "a larger batch saves steps and costs samples"
                                       : "a smaller batch reaches the same with fewer samples";
    return std::string(numbers) + advice + advice_of_use(use);
}

}  // namespace tune::train
