// The inverse of the Cholesky factor of a covariance, extended row by row.
//
// The idea. With K = L L^T a Gaussian process needs L^-1 only (Rasmussen and Williams, "Gaussian
// Processes for Machine Learning", 2006, algorithm 2.1): the weights of the data are L^-T (L^-1 y),
// the variance that rows with covariances k take away is |L^-1 k|^2. Keeping the inverse makes each
// of them a product with a triangle. That is as many operations as a substitution, but of sums that
// do not wait for each other, and of many rows at once it is a product of matrices.
//
// Extending. One more row, with covariances k to the known rows and the variance v (noise
// included), makes the factor [L 0; l^T d] with l = L^-1 k and d^2 = v - l^T l, whose inverse is
//     [L^-1                0  ]
//     [-l^T L^-1 / d    1 / d ]
// for O(n^2) instead of the O(n^3) of a new factor. d^2 is what the known rows leave of the new
// one's variance, which is the noise at least; rounding must not take it away, so half of the noise
// is its lower bound.
//
// Inverting. The inverse of [A 0; B C] is [A^-1 0; -C^-1 B A^-1 C^-1]: two halves and two products,
// down to triangles of 32 rows.
//
// Same bits. The first `base` rows are always factored at once and the others always appended one
// by one, and memory comes in multiples of 64 rows, so that columns begin alike. A factor that grew
// over many asks is therefore equal, bit for bit, to one that a restarted server builds.

#include "tuner/sampler/gp/factor.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tune::tuner {
namespace {

/// Rows that memory is taken for at a time; even, so that columns begin alike in every factor.
constexpr Eigen::Index kReservedRows = 64;

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
    const Eigen::MatrixXd between =
        lower.bottomLeftCorner(n - half, half) * left.triangularView<Eigen::Lower>();
    lower.bottomLeftCorner(n - half, half).noalias() =
        -(right.triangularView<Eigen::Lower>() * between);
}

Eigen::Index rounded_up(Eigen::Index rows) {
    return (rows + kReservedRows - 1) / kReservedRows * kReservedRows;
}

}  // namespace

Eigen::MatrixXd inverse_factor(const Eigen::MatrixXd& covariance) {
    const Eigen::LLT<Eigen::MatrixXd> cholesky(covariance);
    if (cholesky.info() != Eigen::Success) return {};
    Eigen::MatrixXd factor = cholesky.matrixL();
    invert_lower(factor);
    return factor;
}

void CovarianceFactor::set(const Eigen::MatrixXd& rows, std::size_t base,
                           const KernelParameters& kernel) {
    const Eigen::Index n = rows.rows();
    const auto first = static_cast<Eigen::Index>(base);
    TUNE_CHECK(first > 0 && first <= n, "a factor begins with some of its rows");
    Eigen::Index same = 0;
    if (kernel == kernel_ && first == base_)
        while (same < std::min(n, size_) && given_.row(same) == rows.row(same)) ++same;
    if (same < first) {
        kernel_ = kernel;
        weights_ = kernel.inverse_squared_lengths.exp();
        begin(rows, first);
        same = first;
    }
    size_ = same;
    if (inverse_.rows() < n) {
        const Eigen::Index capacity = rounded_up(n);
        inverse_.conservativeResize(capacity, capacity);
        warped_.conservativeResize(capacity, rows.cols());
        given_.conservativeResize(capacity, rows.cols());
    }
    const Eigen::MatrixXd warped = warp_rows(rows.bottomRows(n - same), mask_, kernel_.warping);
    for (Eigen::Index i = same; i < n; ++i) {
        given_.row(i) = rows.row(i);
        append(warped.row(i - same));
    }
}

void CovarianceFactor::begin(const Eigen::MatrixXd& rows, Eigen::Index base) {
    base_ = base;
    const Eigen::Index capacity = rounded_up(std::max(rows.rows(), base + 1));
    given_.resize(capacity, rows.cols());
    warped_.resize(capacity, rows.cols());
    given_.topRows(base) = rows.topRows(base);
    const Eigen::MatrixXd warped = warp_rows(rows.topRows(base), mask_, kernel_.warping);
    warped_.topRows(base) = warped;
    Eigen::MatrixXd covariance = std::exp(kernel_.scale) * matern(warped, warped, mask_, weights_);
    covariance.diagonal().array() += kernel_.noise_variance();
    const Eigen::MatrixXd factor = inverse_factor(covariance);
    TUNE_CHECK(factor.size() > 0, "a covariance with noise is positive");
    inverse_.resize(capacity, capacity);
    inverse_.topLeftCorner(base, base) = factor;
}

/// [[L^-1, 0], [-l^T L^-1 / d, 1 / d]] with l = L^-1 k and d^2 = k(x, x) - l^T l.
void CovarianceFactor::append(const Eigen::MatrixXd& warped_row) {
    const Eigen::Index n = size_;
    const double scale = std::exp(kernel_.scale);
    const double noise = kernel_.noise_variance();
    const auto known = inverse_.topLeftCorner(n, n);
    const Eigen::VectorXd covariances =
        scale * matern(warped_.topRows(n), warped_row, mask_, weights_).col(0);
    const Eigen::VectorXd whitened = known.triangularView<Eigen::Lower>() * covariances;
    // What is left is at least the noise; rounding must not take that.
    const double left = std::sqrt(std::max(scale + noise - whitened.squaredNorm(), noise / 2));
    const Eigen::VectorXd solved = known.transpose().triangularView<Eigen::Upper>() * whitened;
    inverse_.row(n).head(n) = -solved.transpose() / left;
    inverse_(n, n) = 1 / left;
    inverse_.col(n).head(n).setZero();
    warped_.row(n) = warped_row;
    ++size_;
}

}  // namespace tune::tuner
