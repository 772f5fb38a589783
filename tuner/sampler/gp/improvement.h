#pragma once
// The logarithm of the expected improvement, which stays meaningful where the improvement itself
// rounds to nothing (Ament et al., "Unexpected Improvements to Expected Improvement", 2023).
// Private to tuner/sampler.

namespace tune::tuner {

struct LogImprovement {
    double value = 0;    // log of E[max(best - f, 0)]
    double by_mean = 0;  // derivatives
    double by_variance = 0;
};

/// f is normal with this mean and variance (above 0); lower is better.
[[nodiscard]] LogImprovement log_expected_improvement(double mean, double variance, double best);

}  // namespace tune::tuner
