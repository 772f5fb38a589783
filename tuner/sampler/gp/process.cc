// The model. Values are draws of a Gaussian process: k(a, b) = scale * matern52(r), r^2 = sum over
// features of w_j d_j^2, where d_j is the difference of numbers, or 1 for categories that differ.
// Parameters are fitted by maximum a posteriori with the priors of Optuna's GPSampler, which keep
// length scales away from both extremes while there are few values.
//
// The gradient of the evidence (Rasmussen and Williams 2006, eq. 5.9) needs, for each feature, the
// sum of M_ab d_j(a, b)^2 with M = (K^-1 - alpha alpha^T) o dk/d(r^2). For numbers that is
// 2 (sum_a x_a^2 M_a. - x^T M x), so one product M X serves all features at once.

#include "tuner/sampler/gp/process.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "tuner/sampler/gp/minimize.h"

namespace tune::tuner {
namespace {

constexpr double kNoiseMin = 1e-6;
constexpr double kVarianceMin = 1e-12;

/// Covariance and its derivative by the squared distance, for scale 1, in place of the distances.
void apply_matern(Eigen::ArrayXXd& squared, Eigen::ArrayXXd* derivative) {
    const Eigen::ArrayXXd root = (5.0 * squared).sqrt();
    const Eigen::ArrayXXd decay = (-root).exp();
    if (derivative != nullptr) *derivative = (-5.0 / 6.0) * (1.0 + root) * decay;
    squared = (1.0 + root + (5.0 / 3.0) * squared) * decay;
}

Eigen::ArrayXXd squared_distances(const Eigen::MatrixXd& rows, const CategoryMask& is_category,
                                  const Eigen::ArrayXd& weights) {
    const Eigen::Index n = rows.rows();
    Eigen::ArrayXXd sum = Eigen::ArrayXXd::Zero(n, n);
    for (Eigen::Index j = 0; j < rows.cols(); ++j) {
        const double weight = weights[j];
        const auto column = rows.col(j).array();
        for (Eigen::Index b = 0; b < n; ++b) {
            if (is_category[static_cast<std::size_t>(j)]) {
                sum.col(b) += weight * (column != column[b]).cast<double>();
            } else {
                sum.col(b) += weight * (column - column[b]).square();
            }
        }
    }
    return sum;
}

/// log prior and its derivative, added to a value to minimise and its gradient (so negated).
double add_priors(const Eigen::VectorXd& theta, Eigen::VectorXd& gradient) {
    const Eigen::Index features = theta.size() - 2;
    double cost = 0;
    for (Eigen::Index j = 0; j < features; ++j) {
        // -(0.1 / w + 0.1 w)
        const double w = std::exp(theta[j]);
        cost += 0.1 / w + 0.1 * w;
        gradient[j] += -0.1 / w + 0.1 * w;
    }
    // Gamma(2, 1) of the scale: log s - s.
    const double scale = std::exp(theta[features]);
    cost += scale - theta[features];
    gradient[features] += scale - 1;
    // Gamma(1.1, 30) of the noise: 0.1 log v - 30 v.
    const double noise = std::exp(theta[features + 1]);
    cost += 30 * noise - 0.1 * theta[features + 1];
    gradient[features + 1] += 30 * noise - 0.1;
    return cost;
}

/// The inverse of a lower triangle, by halves: two thirds less work than solving for a unit matrix.
void invert_lower(Eigen::Ref<Eigen::MatrixXd> lower) {
    const Eigen::Index n = lower.rows();
    if (n <= 32) {
        const Eigen::MatrixXd copy = lower;
        lower.setIdentity();
        copy.triangularView<Eigen::Lower>().solveInPlace(lower);
        return;
    }
    const Eigen::Index half = n / 2;
    auto left = lower.topLeftCorner(half, half);
    auto right = lower.bottomRightCorner(n - half, n - half);
    invert_lower(left);
    invert_lower(right);
    const Eigen::MatrixXd between = lower.bottomLeftCorner(n - half, half) * left;
    lower.bottomLeftCorner(n - half, half).noalias() = -(right * between);
}

/// The inverse of the Cholesky factor; empty if the matrix is not positive.
Eigen::MatrixXd inverse_factor(const Eigen::MatrixXd& covariance) {
    const Eigen::LLT<Eigen::MatrixXd> cholesky(covariance);
    if (cholesky.info() != Eigen::Success) return {};
    Eigen::MatrixXd factor = cholesky.matrixL();
    invert_lower(factor);
    return factor;
}

}  // namespace

double kernel_cost(const GpData& data, const CategoryMask& is_category,
                   const Eigen::VectorXd& theta, Eigen::VectorXd& gradient) {
    const Eigen::Index n = data.rows.rows();
    const Eigen::Index features = data.rows.cols();
    const Eigen::ArrayXd weights = theta.head(features).array().exp();
    const double scale = std::exp(theta[features]);
    const double noise = std::exp(theta[features + 1]) + kNoiseMin;
    Eigen::ArrayXXd kernel = squared_distances(data.rows, is_category, weights);
    Eigen::ArrayXXd slope;
    apply_matern(kernel, &slope);
    Eigen::MatrixXd covariance = scale * kernel.matrix();
    covariance.diagonal().array() += noise;
    const Eigen::MatrixXd factor = inverse_factor(covariance);
    if (factor.size() == 0) return std::numeric_limits<double>::infinity();
    const Eigen::VectorXd whitened = factor * data.values;
    const Eigen::VectorXd alpha = factor.transpose() * whitened;
    const double cost = 0.5 * whitened.squaredNorm() - factor.diagonal().array().log().sum();
    Eigen::MatrixXd difference = factor.transpose() * factor;
    difference.noalias() -= alpha * alpha.transpose();
    gradient.setZero(theta.size());
    const Eigen::MatrixXd sloped = (difference.array() * slope * scale).matrix();
    const Eigen::MatrixXd product = sloped * data.rows;
    const Eigen::VectorXd sums = sloped.rowwise().sum();
    for (Eigen::Index j = 0; j < features; ++j) {
        const auto column = data.rows.col(j);
        double sum = 0;
        if (is_category[static_cast<std::size_t>(j)]) {
            for (Eigen::Index b = 0; b < n; ++b)
                sum += 0.5 *
                       ((column.array() != column[b]).cast<double>() * sloped.col(b).array()).sum();
        } else {
            sum = (column.array().square() * sums.array()).sum() - column.dot(product.col(j));
        }
        gradient[j] = sum * weights[j];
    }
    gradient[features] = 0.5 * scale * (difference.array() * kernel).sum();
    gradient[features + 1] = 0.5 * (noise - kNoiseMin) * difference.trace();
    return cost + add_priors(theta, gradient);
}

KernelParameters fit_kernel(const GpData& data, const CategoryMask& is_category) {
    const Eigen::Index features = data.rows.cols();
    const auto cost = [&](const Eigen::VectorXd& at, Eigen::VectorXd& gradient) {
        return kernel_cost(data, is_category, at, gradient);
    };
    Eigen::VectorXd theta = Eigen::VectorXd::Zero(features + 2);
    theta[features + 1] = std::log(1e-3);
    minimize(cost, theta, kFitEvaluationsMax);
    return {theta.head(features).array(), theta[features], theta[features + 1]};
}

GaussianProcess::GaussianProcess(GpData data, CategoryMask is_category, KernelParameters parameters)
    : is_category_(std::move(is_category)),
      parameters_(std::move(parameters)),
      weights_(parameters_.inverse_squared_lengths.exp()),
      rows_(std::move(data.rows)),
      scale_(std::exp(parameters_.scale)) {
    const Eigen::Index n = rows_.rows();
    const Eigen::Index seen = data.values.size();
    const double noise = std::exp(parameters_.noise) + kNoiseMin;
    Eigen::ArrayXXd kernel = squared_distances(rows_, is_category_, weights_);
    apply_matern(kernel, nullptr);
    Eigen::MatrixXd covariance = scale_ * kernel.matrix();
    covariance.diagonal().array() += noise;
    factor_ = inverse_factor(covariance);
    TUNE_CHECK(factor_.size() > 0, "a covariance with noise is positive");
    // Pending rows have the value that the seen ones predict ("kriging believer"), so their alpha
    // is 0 and the mean stays as it is. The factor of the seen rows is the corner of the factor.
    alpha_ = Eigen::VectorXd::Zero(n);
    const auto corner = factor_.topLeftCorner(seen, seen);
    alpha_.head(seen) = corner.transpose() * (corner * data.values);
    best_mean_ = (data.values - noise * alpha_.head(seen)).minCoeff();
}

void GaussianProcess::compare(const Eigen::Ref<const Eigen::VectorXd>& row) {
    distances_.setZero(rows_.rows());
    for (Eigen::Index j = 0; j < rows_.cols(); ++j) {
        const auto column = rows_.col(j).array();
        if (is_category_[static_cast<std::size_t>(j)]) {
            distances_ += weights_[j] * (column != row[j]).cast<double>();
        } else {
            distances_ += weights_[j] * (column - row[j]).square();
        }
    }
    root_ = (5.0 * distances_).sqrt();
    decay_ = (-root_).exp();
    covariances_ = (scale_ * (1.0 + root_ + (5.0 / 3.0) * distances_) * decay_).matrix();
    whitened_.noalias() = factor_.triangularView<Eigen::Lower>() * covariances_;
}

GaussianProcess::Prediction GaussianProcess::predict(const Eigen::Ref<const Eigen::VectorXd>& row) {
    compare(row);
    return {covariances_.dot(alpha_), std::max(scale_ - whitened_.squaredNorm(), kVarianceMin)};
}

GaussianProcess::Prediction GaussianProcess::predict(const Eigen::Ref<const Eigen::VectorXd>& row,
                                                     Eigen::VectorXd& mean_gradient,
                                                     Eigen::VectorXd& variance_gradient) {
    const Prediction prediction = predict(row);
    const Eigen::VectorXd solved = factor_.triangularView<Eigen::Lower>().transpose() * whitened_;
    const Eigen::ArrayXd slope = scale_ * (-5.0 / 6.0) * (1.0 + root_) * decay_;
    const Eigen::ArrayXd of_mean = slope * alpha_.array();
    const Eigen::ArrayXd of_variance = -2.0 * slope * solved.array();
    mean_gradient.setZero(rows_.cols());
    variance_gradient.setZero(rows_.cols());
    for (Eigen::Index j = 0; j < rows_.cols(); ++j) {
        if (is_category_[static_cast<std::size_t>(j)]) continue;
        const Eigen::ArrayXd step = 2.0 * weights_[j] * (row[j] - rows_.col(j).array());
        mean_gradient[j] = (of_mean * step).sum();
        variance_gradient[j] = (of_variance * step).sum();
    }
    return prediction;
}

}  // namespace tune::tuner
