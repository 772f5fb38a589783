#pragma once
// A Gaussian process with a Matern 5/2 kernel and a length scale for each feature. Private to
// tuner/sampler.

#include <Eigen/Core>
#include <cstddef>
#include <vector>

namespace tune::tuner {

/// Logarithms throughout, so that any numbers are valid.
struct KernelParameters {
    Eigen::ArrayXd inverse_squared_lengths;  // one a feature
    double scale = 0;                        // variance of the function
    double noise = -7;                       // variance of the noise
};

/// Rows of features and what was seen there, standardised and lower is better.
struct GpData {
    Eigen::MatrixXd rows;  // [n, features]
    Eigen::VectorXd values;
};

/// Which features are categories.
using CategoryMask = std::vector<bool>;

/// The negative logarithm of the posterior density of the parameters, theta = (log w..., log scale,
/// log noise), up to a constant, and its gradient. Infinite where the covariance is not positive in
/// floating point. O(n^3).
[[nodiscard]] double kernel_cost(const GpData& data, const CategoryMask& is_category,
                                 const Eigen::VectorXd& theta, Eigen::VectorXd& gradient);

/// The parameters of greatest posterior density. A function of its arguments only (it always starts
/// at the same place). Priors: those of Optuna 5.0.0 (optuna/_gp/prior.py). Cost: about 20 times
/// O(n^3).
[[nodiscard]] KernelParameters fit_kernel(const GpData& data, const CategoryMask& is_category);

/// The posterior given the parameters. Queries change scratch memory inside: one thread at a time.
class GaussianProcess {
public:
    /// `rows` beyond values.size() are pending: they take away uncertainty and tell no value. Cost
    /// O(n^3).
    GaussianProcess(GpData data, CategoryMask is_category, KernelParameters parameters);

    struct Prediction {
        double mean = 0;
        double variance = 0;  // of the function, without noise; positive
    };
    /// O(n^2).
    [[nodiscard]] Prediction predict(const Eigen::Ref<const Eigen::VectorXd>& row);

    /// Also the gradients by the features that are numbers (0 for categories). O(n^2).
    [[nodiscard]] Prediction predict(const Eigen::Ref<const Eigen::VectorXd>& row,
                                     Eigen::VectorXd& mean_gradient,
                                     Eigen::VectorXd& variance_gradient);

    /// Least posterior mean at the rows that were seen.
    [[nodiscard]] double best_mean() const { return best_mean_; }

    [[nodiscard]] std::size_t row_count() const { return static_cast<std::size_t>(rows_.rows()); }

    [[nodiscard]] const KernelParameters& parameters() const { return parameters_; }

private:
    void compare(const Eigen::Ref<const Eigen::VectorXd>& row);

    CategoryMask is_category_;
    KernelParameters parameters_;
    Eigen::ArrayXd weights_;  // inverse squared lengths
    Eigen::MatrixXd rows_;    // [n, features]
    Eigen::MatrixXd factor_;  // inverse of the Cholesky factor of the covariance with noise
    Eigen::VectorXd alpha_;   // covariance^-1 times values, pending rows with their means
    double scale_ = 1;
    double best_mean_ = 0;
    // Of the query:
    Eigen::ArrayXd distances_;  // squared
    Eigen::ArrayXd root_;
    Eigen::ArrayXd decay_;
    Eigen::VectorXd covariances_;
    Eigen::VectorXd whitened_;
};

}  // namespace tune::tuner
