#pragma once
// The normal distribution, as far as Parzen kernels need it. Private to tuner/sampler.

#include <span>

namespace tune::tuner {

inline constexpr double kSqrtHalf = 0.70710678118654752440;

/// P(X > z) of a standard normal, z >= 0. Relative error below 1e-15; exactly 0 beyond 8.3 if the
/// caller subtracts it from 1 (see kTailGone).
[[nodiscard]] double upper_tail(double z);

/// Beyond this many deviations a tail is below half an ulp of 1, so 1 - tail == 1.
inline constexpr double kTailGone = 8.3;

/// P(X <= z) of a standard normal.
[[nodiscard]] inline double normal_cdf(double z) {
    return z > 0 ? 1 - upper_tail(z) : upper_tail(-z);
}

/// z with P(X <= z) = p, for 0 < p < 1; -inf at 0. Relative error below 1e-15. Source: M. J.
/// Wichura, Algorithm AS 241 (PPND16), Applied Statistics 37 (1988).
[[nodiscard]] double normal_quantile(double p);

/// The same of a normal that has lost `low_tail` of its mass below and `high_tail` above: z with
/// P(X <= z) = uniform. Taken from the nearer end, so that no digits are lost.
[[nodiscard]] double truncated_normal_quantile(double low_tail, double high_tail, double uniform);

/// The same of many, with the same bits, several side by side: `z` holds their uniform numbers and
/// gets the quantiles. REQUIRES: all spans are of one size.
void truncated_normal_quantiles(std::span<const double> low_tails,
                                std::span<const double> high_tails, std::span<double> z);

/// ln P(low < X < high) of a standard normal; -inf if the interval is empty. Relative error of the
/// probability below 1e-12 unless the interval is narrower than 1e-4 deviations.
[[nodiscard]] double log_normal_mass(double low, double high);

}  // namespace tune::tuner
