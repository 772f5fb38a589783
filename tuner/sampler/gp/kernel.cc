// The model. Values are draws of a Gaussian process: k(a, b) = scale * matern52(r), r^2 = sum over
// features of w_j d_j^2, where d_j is the difference of (warped) numbers, or 1 for categories that
// differ. Parameters are fitted by maximum a posteriori. The priors of w, of the scale and of the
// noise are those of Optuna 5.0.0 (optuna/_gp/prior.py), which keep length scales away from both
// extremes while there are few values. The warping's exponents are lognormal, as in HEBO.
//
// The gradient of the evidence (Rasmussen and Williams 2006, eq. 5.9) needs, for each feature, the
// sum of M_ab d_j(a, b)^2 with M = (K^-1 - alpha alpha^T) o dk/d(r^2). For numbers that is
// 2 (sum_a x_a^2 M_a. - x^T M x), so one product M X serves all features at once; and it serves
// their warpings too, since d/dx_a of the whole is 4 w_j (x_a M_a. - (M X)_a).

#include "tuner/sampler/gp/kernel.h"

#include <Eigen/Cholesky>
#include <cmath>
#include <limits>
#include <utility>

#include "tuner/sampler/gp/factor.h"
#include "tuner/sampler/gp/minimize.h"

namespace tune::tuner {
namespace {

/// Gamma distribution of the noise's variance, of standardised values.
constexpr double kNoiseShape = 1.1;
constexpr double kNoiseRate = 30;
/// Of log a and log b, whose mean is 0.
constexpr double kWarpDeviation = 0.75;
/// How much more probable the warped kernel has to be, as a logarithm.
constexpr double kWarpGainMin = 2;
/// With fewer values a warp is a guess.
constexpr Eigen::Index kWarpRowsMin = 20;

/// Sum over features of w_j d_j^2 between `row` and the rows of `rows`.
template <class Rows, class Row, class Out>
void squared_distances(const Rows& rows, const Row& row, const CategoryMask& mask,
                       const Eigen::ArrayXd& weights, Out& out) {
    out.setZero();
    for (Eigen::Index j = 0; j < rows.cols(); ++j) {
        const auto column = rows.col(j).array();
        if (mask[static_cast<std::size_t>(j)]) {
            out += weights[j] * (column != row[j]).template cast<double>();
        } else {
            out += weights[j] * (column - row[j]).square();
        }
    }
}

/// The evidence and its gradient, with memory that serves every evaluation. Of the matrices only
/// the lower triangles mean anything.
class Evidence {
public:
    Evidence(const GpData& data, const CategoryMask& mask) : data_(data), mask_(mask) {
        const Eigen::Index n = data.rows.rows();
        kernel_.resize(n, n);
        slope_.resize(n, n);
        inverse_.resize(n, n);
        warped_.resize(n, data.rows.cols() + 1);
        warped_.leftCols(data.rows.cols()) = data.rows;
        warped_.col(data.rows.cols()).setOnes();
    }

    double cost(const Eigen::VectorXd& theta, Eigen::VectorXd& gradient) {
        const Eigen::Index features = data_.rows.cols();
        const Eigen::ArrayXd weights = theta.head(features).array().exp();
        const double scale = std::exp(theta[features]);
        const double noise = std::exp(theta[features + 1]);
        const bool is_warped = theta.size() > features + 2;
        if (is_warped) warp(theta);
        fill(weights, scale);
        inverse_ = kernel_ * scale;
        inverse_.diagonal().array() += noise + kNoiseMin;
        const Eigen::MatrixXd factor = inverse_factor(inverse_);
        if (factor.size() == 0) return std::numeric_limits<double>::infinity();
        const Eigen::VectorXd whitened = factor.triangularView<Eigen::Lower>() * data_.values;
        const Eigen::VectorXd alpha = factor.transpose().triangularView<Eigen::Upper>() * whitened;
        inverse_.setZero();
        inverse_.selfadjointView<Eigen::Lower>().rankUpdate(factor.transpose());
        inverse_.selfadjointView<Eigen::Lower>().rankUpdate(alpha, -1);
        gradient.setZero(theta.size());
        add_slopes(weights, scale, is_warped, gradient);
        gradient[features + 1] = 0.5 * noise * inverse_.trace();
        return 0.5 * whitened.squaredNorm() - factor.diagonal().array().log().sum();
    }

private:
    /// Covariances of scale 1 and their derivatives by the squared distance.
    void fill(const Eigen::ArrayXd& weights, double scale) {
        const Eigen::Index n = data_.rows.rows();
        const auto rows = warped_.leftCols(data_.rows.cols());
        for (Eigen::Index b = 0; b < n; ++b) {
            squared_.resize(n - b);
            squared_distances(rows.bottomRows(n - b), rows.row(b), mask_, weights, squared_);
            root_ = (5.0 * squared_).sqrt();
            decay_ = (-root_).exp();
            slope_.col(b).tail(n - b) = (scale * (-5.0 / 6.0) * (1.0 + root_) * decay_).matrix();
            kernel_.col(b).tail(n - b) = ((1.0 + root_ + (5.0 / 3.0) * squared_) * decay_).matrix();
        }
    }

    void warp(const Eigen::VectorXd& theta) {
        const Eigen::Index features = data_.rows.cols();
        by_a_.setZero(data_.rows.rows(), features);
        by_b_.setZero(data_.rows.rows(), features);
        for (Eigen::Index j = 0; j < features; ++j) {
            if (mask_[static_cast<std::size_t>(j)]) continue;
            const double a = theta[features + 2 + j];
            const double b = theta[2 * features + 2 + j];
            for (Eigen::Index i = 0; i < data_.rows.rows(); ++i) {
                const WarpedNumber number = warp_number(data_.rows(i, j), a, b);
                warped_(i, j) = number.value;
                by_a_(i, j) = number.by_log_a;
                by_b_(i, j) = number.by_log_b;
            }
        }
    }

    /// By the weights, the scale and the warping; inverse_ holds K^-1 - alpha alpha^T.
    void add_slopes(const Eigen::ArrayXd& weights, double scale, bool is_warped,
                    Eigen::VectorXd& gradient) {
        const Eigen::Index n = data_.rows.rows();
        const Eigen::Index features = data_.rows.cols();
        double by_scale = 0;
        for (Eigen::Index b = 0; b < n; ++b) {
            const auto below = inverse_.col(b).tail(n - b);
            by_scale += below.dot(kernel_.col(b).tail(n - b)) - 0.5 * below[0] * kernel_(b, b);
            slope_.col(b).tail(n - b).array() *= below.array();
        }
        gradient[features] = scale * by_scale;
        const Eigen::MatrixXd product = slope_.selfadjointView<Eigen::Lower>() * warped_;
        const auto sums = product.col(features);
        for (Eigen::Index j = 0; j < features; ++j) {
            const auto column = warped_.col(j);
            if (mask_[static_cast<std::size_t>(j)]) {
                double sum = 0;
                for (Eigen::Index b = 0; b < n; ++b)
                    sum += ((column.tail(n - b).array() != column[b]).cast<double>() *
                            slope_.col(b).tail(n - b).array())
                               .sum();
                gradient[j] = weights[j] * sum;
                continue;
            }
            const Eigen::VectorXd pull = column.cwiseProduct(sums) - product.col(j);
            gradient[j] = weights[j] * column.dot(pull);
            if (!is_warped) continue;
            gradient[features + 2 + j] = 2 * weights[j] * pull.dot(by_a_.col(j));
            gradient[2 * features + 2 + j] = 2 * weights[j] * pull.dot(by_b_.col(j));
        }
    }

    const GpData& data_;
    const CategoryMask& mask_;
    Eigen::MatrixXd kernel_;
    Eigen::MatrixXd slope_;
    Eigen::MatrixXd inverse_;
    Eigen::MatrixXd warped_;  // [n, features + 1], the last one 1
    Eigen::MatrixXd by_a_;
    Eigen::MatrixXd by_b_;
    Eigen::ArrayXd squared_;
    Eigen::ArrayXd root_;
    Eigen::ArrayXd decay_;
};

}  // namespace

bool KernelParameters::operator==(const KernelParameters& other) const {
    return inverse_squared_lengths.size() == other.inverse_squared_lengths.size() &&
           (inverse_squared_lengths == other.inverse_squared_lengths).all() &&
           scale == other.scale && noise == other.noise && warping == other.warping;
}

double KernelParameters::noise_variance() const {
    return std::exp(noise) + kNoiseMin;
}

Eigen::MatrixXd matern(const Eigen::MatrixXd& rows, const Eigen::MatrixXd& others,
                       const CategoryMask& mask, const Eigen::ArrayXd& weights) {
    Eigen::MatrixXd covariances(rows.rows(), others.rows());
    Eigen::ArrayXd squared(rows.rows());
    Eigen::ArrayXd root;
    for (Eigen::Index i = 0; i < others.rows(); ++i) {
        squared_distances(rows, others.row(i), mask, weights, squared);
        root = (5.0 * squared).sqrt();
        covariances.col(i) = ((1.0 + root + (5.0 / 3.0) * squared) * (-root).exp()).matrix();
    }
    return covariances;
}

double evidence_cost(const GpData& data, const CategoryMask& mask, const Eigen::VectorXd& theta,
                     Eigen::VectorXd& gradient) {
    return Evidence(data, mask).cost(theta, gradient);
}

double prior_cost(const CategoryMask& mask, const Eigen::VectorXd& theta,
                  Eigen::VectorXd& gradient) {
    const auto features = static_cast<Eigen::Index>(mask.size());
    gradient.setZero(theta.size());
    double cost = 0;
    for (Eigen::Index j = 0; j < features; ++j) {
        // -(0.1 / w + 0.1 w)
        const double w = std::exp(theta[j]);
        cost += 0.1 / w + 0.1 * w;
        gradient[j] = -0.1 / w + 0.1 * w;
    }
    // Gamma(2, 1) of the scale: log s - s.
    const double scale = std::exp(theta[features]);
    cost += scale - theta[features];
    gradient[features] = scale - 1;
    // (shape - 1) log v - rate v.
    const double noise = std::exp(theta[features + 1]);
    cost += kNoiseRate * noise - (kNoiseShape - 1) * theta[features + 1];
    gradient[features + 1] = kNoiseRate * noise - (kNoiseShape - 1);
    for (Eigen::Index k = features + 2; k < theta.size(); ++k) {
        const double z = theta[k] / kWarpDeviation;
        cost += 0.5 * z * z;
        gradient[k] = z / kWarpDeviation;
    }
    return cost;
}

KernelParameters fit_kernel(const GpData& data, const CategoryMask& mask,
                            const FitSettings& settings) {
    const Eigen::Index features = data.rows.cols();
    Evidence evidence(data, mask);
    const auto cost = [&](const Eigen::VectorXd& at, Eigen::VectorXd& gradient) {
        Eigen::VectorXd of_prior;
        const double prior = prior_cost(mask, at, of_prior);
        const double value = evidence.cost(at, gradient);
        if (!std::isfinite(value)) return value;
        gradient += of_prior;
        if (settings.noise_variance) gradient[features + 1] = 0;
        return value + prior;
    };
    Eigen::VectorXd theta = Eigen::VectorXd::Zero(features + 2);
    theta[features + 1] = std::log(settings.noise_variance.value_or(1e-3));
    const double plain = minimize(cost, theta, kFitEvaluationsMax);
    KernelParameters fitted{theta.head(features).array(), theta[features], theta[features + 1]};
    if (settings.warp == WarpUse::kNever || data.values.size() < kWarpRowsMin) return fitted;
    Eigen::VectorXd warped = Eigen::VectorXd::Zero(3 * features + 2);
    warped.head(features + 2) = theta;
    const double better = minimize(cost, warped, kFitEvaluationsMax);
    if (settings.warp == WarpUse::kWhereItHelps && !(better < plain - kWarpGainMin)) return fitted;
    return {warped.head(features).array(),
            warped[features],
            warped[features + 1],
            {warped.segment(features + 2, features).array(), warped.tail(features).array()}};
}

}  // namespace tune::tuner
