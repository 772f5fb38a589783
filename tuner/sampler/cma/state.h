#pragma once
// One run of CMA-ES with margin: a normal distribution that learns from ranked points. Private to
// tuner/sampler; see state.cc.

#include <Eigen/Core>
#include <cstddef>
#include <vector>

#include "tuner/sampler/axis.h"

namespace tune::tuner {

/// A point before it is put on grids, in units of the axes' ranges, and how it ranks.
struct CmaMember {
    Eigen::VectorXd latent;
    bool is_drawn = false;  // from this very distribution; others are pulled near before they count
};

class CmaState {
public:
    /// `axes`: numbers, none a category; kept by reference. `mean` in units: [0, 1] an axis.
    CmaState(const std::vector<Axis>& axes, std::size_t population, Eigen::VectorXd mean,
             double sigma);

    /// The latent point of independent standard normal numbers.
    [[nodiscard]] Eigen::VectorXd latent(const Eigen::VectorXd& normals) const;

    /// True if every continuous coordinate lies within its bounds (grids always do).
    [[nodiscard]] bool is_feasible(const Eigen::VectorXd& latent) const;

    /// Internal values of a latent point: margins applied, put on grids, within bounds.
    [[nodiscard]] std::vector<double> values(const Eigen::VectorXd& latent) const;

    /// Where internal values lie, in units.
    [[nodiscard]] Eigen::VectorXd position(const std::vector<double>& values) const;

    /// Learns from a generation, best member first. Weights are those of members.size(), which is
    /// the population unless trials failed; fewer than two change nothing. `best`, `worst`: values,
    /// for the stopping rule. O(members d^2 + d^3).
    void update(const std::vector<CmaMember>& members, double best, double worst);

    /// True when going on is pointless: values all equal, steps too small or too long, or a
    /// covariance that floating point no longer carries.
    [[nodiscard]] bool is_spent() const { return is_spent_; }

    [[nodiscard]] std::size_t population() const { return population_; }
    [[nodiscard]] const Eigen::VectorXd& mean() const { return mean_; }
    [[nodiscard]] const Eigen::MatrixXd& covariance() const { return covariance_; }
    [[nodiscard]] double sigma() const { return sigma_; }
    /// How much wider each grid's marginal is than the distribution says (the matrix A).
    [[nodiscard]] const Eigen::VectorXd& scales() const { return scales_; }

private:
    void decompose();
    void hold_margins();
    [[nodiscard]] bool must_stop() const;

    const std::vector<Axis>* axes_;
    std::size_t population_;
    Eigen::VectorXd mean_;
    double sigma_;
    Eigen::MatrixXd covariance_;
    Eigen::VectorXd scales_;
    Eigen::VectorXd step_path_;
    Eigen::VectorXd covariance_path_;
    std::size_t generation_ = 0;
    // Of covariance_: eigenvectors, and roots of the eigenvalues.
    Eigen::MatrixXd axes_of_ellipsoid_;
    Eigen::VectorXd lengths_;
    std::vector<double> recent_;  // best and worst value of the latest generations, a ring
    bool is_spent_ = false;
};

/// 4 + floor(3 ln d), Hansen's default.
[[nodiscard]] std::size_t default_population(std::size_t dimensions);

}  // namespace tune::tuner
