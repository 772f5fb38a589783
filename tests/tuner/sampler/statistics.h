#pragma once
// Tests of distributions. The draws have fixed seeds, so a test that passed once passes always; the
// bounds are what a right sampler exceeds once in a million seeds or less.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace tune::tuner {

/// For kolmogorov(): p = 3e-7.
inline constexpr double kKolmogorovMax = 2.8;
/// For chi_square_deviation(): p about 1e-6 (its tail is heavier than the normal's).
inline constexpr double kDeviationMax = 6;

/// The largest distance between the empirical and a continuous distribution, times sqrt(n)
/// (Kolmogorov and Smirnov).
inline double kolmogorov(std::vector<double> values, const std::function<double(double)>& cdf) {
    std::sort(values.begin(), values.end());
    const auto n = static_cast<double>(values.size());
    double distance = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double expected = cdf(values[i]);
        const auto rank = static_cast<double>(i);
        distance = std::max({distance, expected - rank / n, (rank + 1) / n - expected});
    }
    return distance * std::sqrt(n);
}

/// Chi-square of counts against probabilities, in standard deviations from its mean.
inline double chi_square_deviation(const std::vector<double>& counts,
                                   const std::vector<double>& probabilities) {
    double total = 0;
    for (const double count : counts) total += count;
    double chi_square = 0;
    double freedom = -1;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        if (probabilities[i] == 0) {
            if (counts[i] > 0) return std::numeric_limits<double>::infinity();
            continue;
        }
        const double expected = total * probabilities[i];
        chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
        ++freedom;
    }
    return (chi_square - freedom) / std::sqrt(2 * freedom);
}

}  // namespace tune::tuner
