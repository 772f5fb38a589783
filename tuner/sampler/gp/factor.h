#pragma once
// The inverse of the Cholesky factor of a covariance, which grows with the rows. Private to
// tuner/sampler.

#include <Eigen/Core>
#include <cstddef>

#include "tuner/sampler/gp/kernel.h"

namespace tune::tuner {

/// The inverse of the Cholesky factor; empty if the matrix is not positive. O(n^3).
[[nodiscard]] Eigen::MatrixXd inverse_factor(const Eigen::MatrixXd& covariance);

/// The first `base` rows are factored at once, the others one at a time, always: so one that has
/// grown from an earlier call has the same bits as one that was built for the last call alone.
class CovarianceFactor {
public:
    explicit CovarianceFactor(CategoryMask mask) : mask_(std::move(mask)) {}

    /// Makes it that of `rows` [n, features]. Keeps what the last call computed of the same kernel,
    /// base and leading rows. Cost: O(n^2) for each new row beyond the base, O(base^3) for another
    /// base.
    void set(const Eigen::MatrixXd& rows, std::size_t base, const KernelParameters& kernel);

    [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(size_); }
    /// [n, n], lower triangle; what is above is zero.
    [[nodiscard]] auto inverse() const { return inverse_.topLeftCorner(size_, size_); }
    /// [n, features], warped.
    [[nodiscard]] auto rows() const { return warped_.topRows(size_); }
    [[nodiscard]] const KernelParameters& kernel() const { return kernel_; }
    [[nodiscard]] const Eigen::ArrayXd& weights() const { return weights_; }
    [[nodiscard]] const CategoryMask& mask() const { return mask_; }

private:
    void begin(const Eigen::MatrixXd& rows, Eigen::Index base);
    void append(const Eigen::MatrixXd& warped_row);

    CategoryMask mask_;
    KernelParameters kernel_;
    Eigen::ArrayXd weights_;  // inverse squared lengths
    Eigen::Index base_ = 0;
    Eigen::Index size_ = 0;
    Eigen::MatrixXd given_;    // [capacity, features], as they came
    Eigen::MatrixXd warped_;   // [capacity, features]
    Eigen::MatrixXd inverse_;  // [capacity, capacity]
};

}  // namespace tune::tuner
