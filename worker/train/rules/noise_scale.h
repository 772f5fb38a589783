#pragma once
// The gradient noise scale: how large a batch may grow before more samples a step stop helping
// (McCandlish et al. 2018, arXiv:1812.06162, appendix A.1). Pure functions and a small state.

#include <cstdint>
#include <optional>
#include <string>

namespace tune::train {

/// Squared norms of a step's gradient, as measured with a part of the batch and with all of it.
struct NoiseSample {
    double small_square = 0.0;  ///< sum over the parts
    double big_square = 0.0;
    double big_batch = 0.0;  ///< samples of the step: of all parts
    std::int64_t parts = 0;  ///< two or more
};

/// B_simple = tr(Sigma) / |G|^2. Each sample gives unbiased estimates of both,
///     |G|^2 = (B_big |g_big|^2 - B_small |g_small|^2) / (B_big - B_small)
///     tr(Sigma) = (|g_small|^2 - |g_big|^2) / (1 / B_small - 1 / B_big)
/// which are averaged apart, since the ratio of two noisy numbers is biased. A value.
class NoiseScale {
public:
    /// Weight of what was known before, for each sample that comes.
    static constexpr double kDecay = 0.95;

    /// A sample of fewer than two parts tells nothing.
    void add(const NoiseSample& sample);
    /// In samples; nothing before there is an estimate, or while that of |G|^2 is not above 0.
    [[nodiscard]] std::optional<double> value() const;

    struct State {
        double gradient_square = 0.0;
        double variance = 0.0;
        std::int64_t count = 0;
    };
    [[nodiscard]] const State& state() const { return state_; }
    void load_state(const State& state) { state_ = state; }

private:
    State state_;
};

/// How much of a device a run used; 0: unknown.
struct DeviceUse {
    double peak_bytes = 0.0;
    double total_bytes = 0.0;
    double samples_per_s = 0.0;
    double wait_share = 0.0;  ///< of the time, for data
};

/// A sentence for people: what the noise scale says about the batch size, and whether the device
/// would bear a larger one.
[[nodiscard]] std::string noise_advice(double noise_scale, std::int64_t batch_size,
                                       const DeviceUse& use = {});

}  // namespace tune::train
