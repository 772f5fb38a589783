#pragma once
// Input warping: a number in [0, 1] goes through the distribution function of Kumaraswamy's
// distribution before the kernel compares it (Snoek et al., "Input Warping for Bayesian
// Optimization of Non-stationary Functions", 2014; HEBO and BoTorch do the same). A function that
// is lively at one end of a range and flat at the other then has one length scale after all.
// Private to tuner/sampler.

#include <Eigen/Core>
#include <vector>

namespace tune::tuner {

/// Which features are categories.
using CategoryMask = std::vector<bool>;

/// Logarithms of the two exponents, one pair a feature; empty: nothing is warped. Zero, both: the
/// number itself.
struct Warping {
    Eigen::ArrayXd log_a;
    Eigen::ArrayXd log_b;

    [[nodiscard]] bool is_on() const { return log_a.size() > 0; }
    [[nodiscard]] bool operator==(const Warping& other) const;
};

/// 1 - (1 - x^a)^b and its derivatives.
struct WarpedNumber {
    double value = 0;
    double by_x = 0;
    double by_log_a = 0;
    double by_log_b = 0;
};

/// `x` in [0, 1]; drawn in by 1e-6 of the range first, where the derivatives are finite.
[[nodiscard]] WarpedNumber warp_number(double x, double log_a, double log_b);

/// Rows [n, features] as the kernel compares them; categories stay.
[[nodiscard]] Eigen::MatrixXd warp_rows(const Eigen::MatrixXd& rows, const CategoryMask& mask,
                                        const Warping& warping);

}  // namespace tune::tuner
