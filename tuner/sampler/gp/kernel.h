#pragma once
// The kernel: its parameters, its covariances, and the fit to what was seen. Private to
// tuner/sampler.

#include <Eigen/Core>
#include <optional>

#include "tuner/sampler/gp/warping.h"

namespace tune::tuner {

/// Variance that is added to any noise, for the sake of the arithmetic.
inline constexpr double kNoiseMin = 1e-6;

/// Logarithms throughout, so that any numbers are valid.
struct KernelParameters {
    Eigen::ArrayXd inverse_squared_lengths;  // one a feature
    double scale = 0;                        // variance of the function
    double noise = -7;                       // variance of the noise
    Warping warping = {};

    [[nodiscard]] bool operator==(const KernelParameters& other) const;
    /// Of one value, kNoiseMin included.
    [[nodiscard]] double noise_variance() const;
};

/// Rows of features and what was seen there, standardised and lower is better.
struct GpData {
    Eigen::MatrixXd rows;  // [n, features]
    Eigen::VectorXd values;
};

/// Covariances of scale 1 between rows [n, features] and rows [m, features], both warped: [n, m].
[[nodiscard]] Eigen::MatrixXd matern(const Eigen::MatrixXd& rows, const Eigen::MatrixXd& others,
                                     const CategoryMask& mask, const Eigen::ArrayXd& weights);

/// The negative logarithm of the evidence without its constant n/2 log(2 pi), and its gradient, at
/// theta = (log w..., log scale, log noise) or (log w..., log scale, log noise, log a..., log
/// b...). Infinite where the covariance is not positive in floating point. O(n^3).
[[nodiscard]] double evidence_cost(const GpData& data, const CategoryMask& mask,
                                   const Eigen::VectorXd& theta, Eigen::VectorXd& gradient);

/// What is known before any value: priors of theta, negated logarithms, up to a constant.
[[nodiscard]] double prior_cost(const CategoryMask& mask, const Eigen::VectorXd& theta,
                                Eigen::VectorXd& gradient);

enum class WarpUse { kNever, kWhereItHelps, kAlways };

struct FitSettings {
    WarpUse warp = WarpUse::kWhereItHelps;
    std::optional<double> noise_variance = {};  // none: fitted
};

/// The parameters of greatest posterior density. A function of its arguments only (it always starts
/// at the same places). Cost: up to 60 times O(n^3).
[[nodiscard]] KernelParameters fit_kernel(const GpData& data, const CategoryMask& mask,
                                          const FitSettings& settings = {});

}  // namespace tune::tuner
