// The posterior of a Gaussian process at a row x with the covariances k to the rows that were seen:
//     mean(x) = k^T alpha,  alpha = K^-1 y        variance(x) = scale - |L^-1 k|^2
// (Rasmussen and Williams 2006, eq. 2.25 and 2.26). K includes the noise, the variance does not: it
// is the function that is of interest, not one more noisy value of it.
//
// Pending rows. A trial that runs takes the value that the model predicts for it ("kriging
// believer": Ginsbourger, Le Riche, Carraro, 2010). The system with such rows is solved by alpha of
// the seen rows and 0 for the pending ones, so the mean does not change at all; only the variance
// shrinks around them, which is what keeps parallel asks apart.
//
// The best so far is the least posterior mean at a seen row, y - noise * alpha, and not the least
// value: under noise that is luck.
//
// Gradients. With q the squared distance, k = scale (1 + sqrt(5 q) + 5 q / 3) exp(-sqrt(5 q)) and
// dk/dq = -(5/6) scale (1 + sqrt(5 q)) exp(-sqrt(5 q)), which is finite at q = 0, unlike the
// derivative by the distance itself. By a number x_j it is 2 w_j (x_j - x_ij) dk/dq, times the
// slope of the warp where there is one.

#include "tuner/sampler/gp/process.h"

#include <algorithm>
#include <cmath>

namespace tune::tuner {
namespace {

constexpr double kVarianceMin = 1e-12;
/// Rows that predict_all takes at once: their covariances stay near the processor.
constexpr Eigen::Index kPredictedRows = 64;

}  // namespace

GaussianProcess::GaussianProcess(const CovarianceFactor& factor, const Eigen::VectorXd& values)
    : factor_(factor), scale_(std::exp(factor.kernel().scale)) {
    const auto n = static_cast<Eigen::Index>(factor.size());
    const Eigen::Index seen = values.size();
    // Pending rows have the value that the seen ones predict ("kriging believer"), so their alpha
    // is 0 and the mean stays as it is. The factor of the seen rows is the corner of the factor.
    alpha_ = Eigen::VectorXd::Zero(n);
    const auto corner = factor.inverse().topLeftCorner(seen, seen);
    const Eigen::VectorXd whitened = corner.triangularView<Eigen::Lower>() * values;
    alpha_.head(seen) = corner.transpose().triangularView<Eigen::Upper>() * whitened;
    best_mean_ = (values - factor.kernel().noise_variance() * alpha_.head(seen)).minCoeff();
}

void GaussianProcess::compare(const Eigen::Ref<const Eigen::VectorXd>& row) {
    query_ = row;
    warped_ = row;
    const Warping& warping = factor_.kernel().warping;
    const auto rows = factor_.rows();
    distances_.setZero(rows.rows());
    for (Eigen::Index j = 0; j < rows.cols(); ++j) {
        const auto column = rows.col(j).array();
        const double weight = factor_.weights()[j];
        if (factor_.mask()[static_cast<std::size_t>(j)]) {
            distances_ += weight * (column != row[j]).cast<double>();
            continue;
        }
        if (warping.is_on() && (warping.log_a[j] != 0 || warping.log_b[j] != 0))
            warped_[j] = warp_number(row[j], warping.log_a[j], warping.log_b[j]).value;
        distances_ += weight * (column - warped_[j]).square();
    }
    root_ = (5.0 * distances_).sqrt();
    decay_ = (-root_).exp();
    covariances_ = (scale_ * (1.0 + root_ + (5.0 / 3.0) * distances_) * decay_).matrix();
    whitened_.noalias() = factor_.inverse().triangularView<Eigen::Lower>() * covariances_;
}

GaussianProcess::Prediction GaussianProcess::predict(const Eigen::Ref<const Eigen::VectorXd>& row) {
    if (query_.size() != row.size() || query_ != row) compare(row);
    return {covariances_.dot(alpha_), std::max(scale_ - whitened_.squaredNorm(), kVarianceMin)};
}

GaussianProcess::Prediction GaussianProcess::predict(const Eigen::Ref<const Eigen::VectorXd>& row,
                                                     Eigen::VectorXd& mean_gradient,
                                                     Eigen::VectorXd& variance_gradient) {
    const Prediction prediction = predict(row);
    const auto rows = factor_.rows();
    const Warping& warping = factor_.kernel().warping;
    const Eigen::VectorXd solved =
        factor_.inverse().transpose().triangularView<Eigen::Upper>() * whitened_;
    const Eigen::ArrayXd slope = scale_ * (-5.0 / 6.0) * (1.0 + root_) * decay_;
    const Eigen::ArrayXd of_mean = slope * alpha_.array();
    const Eigen::ArrayXd of_variance = -2.0 * slope * solved.array();
    mean_gradient.setZero(rows.cols());
    variance_gradient.setZero(rows.cols());
    for (Eigen::Index j = 0; j < rows.cols(); ++j) {
        if (factor_.mask()[static_cast<std::size_t>(j)]) continue;
        double weight = 2.0 * factor_.weights()[j];
        if (warping.is_on()) weight *= warp_number(row[j], warping.log_a[j], warping.log_b[j]).by_x;
        const Eigen::ArrayXd step = weight * (warped_[j] - rows.col(j).array());
        mean_gradient[j] = (of_mean * step).sum();
        variance_gradient[j] = (of_variance * step).sum();
    }
    return prediction;
}

std::vector<GaussianProcess::Prediction> GaussianProcess::predict_all(const Eigen::MatrixXd& rows) {
    std::vector<Prediction> predictions;
    const Eigen::MatrixXd warped = warp_rows(rows, factor_.mask(), factor_.kernel().warping);
    const Eigen::MatrixXd known = factor_.rows();
    for (Eigen::Index first = 0; first < warped.rows(); first += kPredictedRows) {
        const Eigen::Index count = std::min(kPredictedRows, warped.rows() - first);
        const Eigen::MatrixXd covariances = scale_ * matern(known, warped.middleRows(first, count),
                                                            factor_.mask(), factor_.weights());
        const Eigen::MatrixXd whitened =
            factor_.inverse().triangularView<Eigen::Lower>() * covariances;
        const Eigen::VectorXd means = covariances.transpose() * alpha_;
        for (Eigen::Index i = 0; i < count; ++i)
            predictions.push_back(
                {means[i], std::max(scale_ - whitened.col(i).squaredNorm(), kVarianceMin)});
    }
    return predictions;
}

}  // namespace tune::tuner
