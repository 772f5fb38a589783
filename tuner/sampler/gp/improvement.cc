// The logarithm of the expected improvement, log(sigma h(z)) with z = (best - mean) / sigma and
// h(z) = phi(z) + z Phi(z), in floating point (Ament et al., "Unexpected Improvements to Expected
// Improvement for Bayesian Optimization", 2023).
//
// For z > -1 the formula is computed as it stands. Below, both terms are tiny and nearly cancel, so
// phi is taken out: h = phi(z) (1 - t m(t)) with t = -z and Mills' ratio m(t) = Phi(-t) / phi(t),
// computed as exp(t^2 / 2) erfc(t / sqrt 2). Beyond t = 30, before the two factors leave the range
// of doubles, the asymptotic series 1 - t m(t) = 1/t^2 - 3/t^4 + 15/t^6 has all digits that count.
// The slope is h'/h = Phi / h.

#include "tuner/sampler/gp/improvement.h"

#include <cmath>

namespace tune::tuner {
namespace {

constexpr double kLogRootTwoPi = 0.91893853320467274178;
constexpr double kRootHalfPi = 1.25331413731550025121;
constexpr double kRootHalf = 0.70710678118654752440;

/// log(phi(z) + z Phi(z)) and its derivative Phi(z) / (phi(z) + z Phi(z)).
struct LogH {
    double value;
    double slope;
};

LogH log_h(double z) {
    const double log_density = -0.5 * z * z - kLogRootTwoPi;
    if (z > -1) {
        const double below = 0.5 * std::erfc(-z * kRootHalf);
        const double h = std::exp(log_density) + z * below;
        return {std::log(h), below / h};
    }
    const double t = -z;
    if (t > 30)
        return {log_density - 2 * std::log(t) + std::log1p((15 / (t * t) - 3) / (t * t)),
                t + 2 / t};
    // Phi(z) = phi(z) * mills, so h = phi(z) (1 - t mills).
    const double mills = kRootHalfPi * std::exp(0.5 * t * t) * std::erfc(t * kRootHalf);
    const double rest = 1 - t * mills;
    return {log_density + std::log(rest), mills / rest};
}

}  // namespace

LogImprovement log_expected_improvement(double mean, double variance, double best) {
    const double deviation = std::sqrt(variance);
    const double z = (best - mean) / deviation;
    const LogH h = log_h(z);
    LogImprovement result;
    result.value = std::log(deviation) + h.value;
    result.by_mean = -h.slope / deviation;
    // d(log deviation)/dv = 1 / (2 v), dz/dv = -z / (2 v)
    result.by_variance = (1 - h.slope * z) / (2 * variance);
    return result;
}

}  // namespace tune::tuner
