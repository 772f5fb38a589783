// The normal distribution, nearly to the last digit.
//
//   tails       by erfc, which keeps its relative accuracy far out, where 1 - erf has no digit left
//   quantile    M. J. Wichura, Algorithm AS 241 (PPND16), Applied Statistics 37 (1988): three
//               ratios of polynomials of degree 7, for the centre (in q = p - 1/2) and for the near
//               and far tails (in sqrt(-ln p))
//   truncated   the quantile of what is left between two cut tails, always counted from the nearer
//               end: 1 - tiny would round to 1, tiny does not
//   mass        of an interval, as a logarithm: an interval below the mean is reflected, one around
//               it is a sum of two parts without cancellation, one in the far tail is a difference
//               of logarithms by the asymptotic series of Mills' ratio, where the masses themselves
//               are below the smallest double
//
// Many quantiles at once are computed in pairs by the same formulas in the same order, so that they
// equal those computed one by one.

#include "tuner/sampler/normal.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace tune::tuner {
namespace {

constexpr double kLogSqrtTau = 0.91893853320467274178;

// AS 241: numerators and denominators near the centre, in the middle and far out; highest power
// first.
constexpr double kCentre[] = {2509.0809287301226727, 33430.575583588128105, 67265.770927008700853,
                              45921.953931549871457, 13731.693765509461125, 1971.5909503065514427,
                              133.14166789178437745, 3.387132872796366608};
constexpr double kCentreBelow[] = {
    5226.495278852545925,  28729.085735721942674, 39307.89580009271061,  21213.794301586595867,
    5394.1960214247511077, 687.1870074920579083,  42.313330701600911252, 1.0};
constexpr double kMiddle[] = {7.7454501427834140764e-4, 0.0227238449892691845833,
                              0.24178072517745061177,   1.27045825245236838258,
                              3.64784832476320460504,   5.7694972214606914055,
                              4.6303378461565452959,    1.42343711074968357734};
constexpr double kMiddleBelow[] = {1.05075007164441684324e-9, 5.475938084995344946e-4,
                                   0.0151986665636164571966,  0.14810397642748007459,
                                   0.68976733498510000455,    1.6763848301838038494,
                                   2.05319162663775882187,    1.0};
constexpr double kFar[] = {2.01033439929228813265e-7, 2.71155556874348757815e-5,
                           0.0012426609473880784386,  0.026532189526576123093,
                           0.29656057182850489123,    1.7848265399172913358,
                           5.4637849111641143699,     6.6579046435011037772};
constexpr double kFarBelow[] = {2.04426310338993978564e-15, 1.4215117583164458887e-7,
                                1.8463183175100546818e-5,   7.868691311456132591e-4,
                                0.0148753612908506148525,   0.13692988092273580531,
                                0.59983220655588793769,     1.0};

/// Where the centre ends.
constexpr double kCentreEnd = 0.425;
constexpr double kCentreSquare = 0.180625;

/// Two numbers, handled as one.
using Pair = double __attribute__((vector_size(16)));
constexpr std::size_t kPair = 2;

Pair pair_at(std::span<const double> numbers, std::size_t at) {
    Pair pair;
    std::memcpy(&pair, numbers.data() + at, sizeof pair);
    return pair;
}

/// Number: double or Pair.
template <class Number>
Number polynomial(const double (&coefficients)[8], const Number& r) {
    Number sum = coefficients[0] - Number{};
    for (int i = 1; i < 8; ++i) sum = sum * r + coefficients[i];
    return sum;
}

/// The quantile of q + 1/2. REQUIRES: |q| <= kCentreEnd.
template <class Number>
Number centre_quantile(const Number& q) {
    const Number r = kCentreSquare - q * q;
    return q * polynomial(kCentre, r) / polynomial(kCentreBelow, r);
}

/// ln P(X > z) for large z by the asymptotic series of Mills' ratio.
double log_far_tail(double z) {
    double term = 1;
    double sum = 1;
    const double inverse = 1 / (z * z);
    for (int k = 1; k < 20; ++k) {
        const double next = -term * (2 * k - 1) * inverse;
        if (std::abs(next) >= std::abs(term)) break;
        term = next;
        sum += term;
        if (std::abs(term) < 1e-17) break;
    }
    return -0.5 * z * z - std::log(z) - kLogSqrtTau + std::log(sum);
}

double log_upper_tail(double z) {
    return z < 20 ? std::log(upper_tail(z)) : log_far_tail(z);
}

}  // namespace

double upper_tail(double z) {
    return 0.5 * std::erfc(z * kSqrtHalf);
}

double log_normal_mass(double low, double high) {
    if (!(low < high)) return -std::numeric_limits<double>::infinity();
    if (high <= 0) return log_normal_mass(-high, -low);
    if (low <= 0) {
        // Around the mean both halves add up without cancellation.
        const double mass = 0.5 * (std::erf(high * kSqrtHalf) + std::erf(-low * kSqrtHalf));
        return mass < 0.5 ? std::log(mass) : std::log1p(-upper_tail(-low) - upper_tail(high));
    }
    if (low < 20) {
        const double mass = upper_tail(low) - upper_tail(high);
        if (mass > 0) return std::log(mass);
    }
    const double log_low = log_upper_tail(low);
    return log_low + std::log1p(-std::exp(log_upper_tail(high) - log_low));
}

double normal_quantile(double p) {
    const double q = p - 0.5;
    if (std::abs(q) <= kCentreEnd) return centre_quantile(q);
    double r = q < 0 ? p : 1 - p;
    if (r <= 0) return std::copysign(std::numeric_limits<double>::infinity(), q);
    r = std::sqrt(-std::log(r));
    const double z = r <= 5 ? polynomial(kMiddle, r - 1.6) / polynomial(kMiddleBelow, r - 1.6)
                            : polynomial(kFar, r - 5) / polynomial(kFarBelow, r - 5);
    return q < 0 ? -z : z;
}

double truncated_normal_quantile(double low_tail, double high_tail, double uniform) {
    const double mass = 1 - low_tail - high_tail;
    const double below = low_tail + uniform * mass;
    return below <= 0.5 ? normal_quantile(below)
                        : -normal_quantile(high_tail + (1 - uniform) * mass);
}

/// Most lie in the centre, where two polynomials are all there is: chains of operations of which
/// each waits for the one before, so that several side by side take as long as one. Which end is
/// the nearer one is a matter of chance, so no branch depends on it.
void truncated_normal_quantiles(std::span<const double> low_tails,
                                std::span<const double> high_tails, std::span<double> z) {
    std::size_t at = 0;
    for (; at + kPair <= z.size(); at += kPair) {
        const Pair low = pair_at(low_tails, at);
        const Pair high = pair_at(high_tails, at);
        const Pair uniform = pair_at(z, at);
        const Pair mass = 1 - low - high;
        const Pair below = low + uniform * mass;
        const auto is_near = below <= 0.5;
        const Pair p = is_near ? below : high + (1 - uniform) * mass;
        const Pair q = p - 0.5;
        Pair quantile = centre_quantile(q);
        for (std::size_t i = 0; i < kPair; ++i)
            if (!(std::abs(q[i]) <= kCentreEnd)) quantile[i] = normal_quantile(p[i]);
        quantile = is_near ? quantile : -quantile;
        std::memcpy(z.data() + at, &quantile, sizeof quantile);
    }
    for (; at < z.size(); ++at)
        z[at] = truncated_normal_quantile(low_tails[at], high_tails[at], z[at]);
}

}  // namespace tune::tuner
