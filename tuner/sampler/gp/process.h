#pragma once
// A Gaussian process with a Matern 5/2 kernel, a length scale for each feature and, where it helps,
// warped features. Private to tuner/sampler.

#include <Eigen/Core>
#include <cstddef>

#include "tuner/sampler/gp/factor.h"
#include "tuner/sampler/gp/kernel.h"

namespace tune::tuner {

/// The posterior given the parameters. Queries change scratch memory inside: one thread at a time.
class GaussianProcess {
public:
    /// `rows` beyond values.size() are pending: they take away uncertainty and tell no value.
    /// `factor`: of the covariance of these rows under `kernel`; kept for as long as this lives.
    /// Cost O(n^2).
    GaussianProcess(const CovarianceFactor& factor, const Eigen::VectorXd& values);

    struct Prediction {
        double mean = 0;
        double variance = 0;  // of the function, without noise; positive
    };
    /// O(n^2).
    [[nodiscard]] Prediction predict(const Eigen::Ref<const Eigen::VectorXd>& row);

    /// Also the gradients by the features that are numbers (0 for categories). O(n^2); half of it
    /// if the row is that of the last call.
    [[nodiscard]] Prediction predict(const Eigen::Ref<const Eigen::VectorXd>& row,
                                     Eigen::VectorXd& mean_gradient,
                                     Eigen::VectorXd& variance_gradient);

    /// Of many rows [m, features] at once, for about half the cost of one at a time.
    [[nodiscard]] std::vector<Prediction> predict_all(const Eigen::MatrixXd& rows);

    /// Least posterior mean at the rows that were seen: with noise the least value is luck.
    [[nodiscard]] double best_mean() const { return best_mean_; }

    [[nodiscard]] std::size_t row_count() const { return factor_.size(); }

    [[nodiscard]] const KernelParameters& parameters() const { return factor_.kernel(); }

private:
    void compare(const Eigen::Ref<const Eigen::VectorXd>& row);

    const CovarianceFactor& factor_;
    Eigen::VectorXd alpha_;  // covariance^-1 times values, pending rows with their means
    double scale_ = 1;
    double best_mean_ = 0;
    // Of the last query:
    Eigen::VectorXd query_;
    Eigen::VectorXd warped_;
    Eigen::ArrayXd distances_;  // squared
    Eigen::ArrayXd root_;
    Eigen::ArrayXd decay_;
    Eigen::VectorXd covariances_;
    Eigen::VectorXd whitened_;
};

}  // namespace tune::tuner
