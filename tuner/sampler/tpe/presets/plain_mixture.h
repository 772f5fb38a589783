#pragma once
// The Parzen mixtures of Hyperopt and of Watanabe's recommendation, built anew for each ask.
// Private to tuner/sampler; see plain_mixture.cc.

#include <cstddef>
#include <span>
#include <vector>

#include "tuner/sampler/axis.h"

namespace tune::tuner {

enum class MixtureRule {
    kHyperopt,  // one axis at a time: one normaliser, categories by counting
    kWatanabe   // product kernels, each with its own normaliser
};

class PlainMixture {
public:
    /// `rows`: positions, one vector an observation. `weights`: one a row and the prior's last; not
    /// normalised. REQUIRES: kHyperopt has one axis. O(axes * n log n).
    PlainMixture(std::span<const Axis> axes, const std::vector<std::vector<double>>& rows,
                 std::vector<double> weights, MixtureRule rule);

    /// ln of the density per unit of position; of the probability for grids and categories.
    [[nodiscard]] double log_density(std::span<const double> point) const;

    /// Chooses a kernel by its share of what lies within the bounds.
    [[nodiscard]] std::size_t component(double uniform) const;
    [[nodiscard]] double draw_position(std::size_t axis, std::size_t row, double uniform) const;

private:
    /// One axis of all kernels, the prior last.
    struct Marginal {
        std::vector<double> mu;
        std::vector<double> sigma;
        std::vector<double> mass;    // within the bounds
        std::vector<double> codes;   // categories
        std::vector<double> shares;  // kHyperopt: probability of each category
    };

    [[nodiscard]] Marginal numbers(const Axis& axis, std::vector<double> mu) const;
    [[nodiscard]] double log_kernel(std::size_t axis, std::size_t row, double position) const;
    void count_categories(Marginal& marginal, const Axis& axis) const;

    std::vector<Axis> axes_;
    MixtureRule rule_;
    std::vector<double> weights_;  // normalised
    std::vector<double> chances_;  // of being chosen
    std::vector<Marginal> marginals_;
    double log_accepted_ = 0;  // kHyperopt: ln of the mixture's mass within the bounds
};

/// Hyperopt's weights by age: the newest 25 of n weigh 1, older ones fall linearly to 1/n.
[[nodiscard]] std::vector<double> weights_by_age(std::size_t count);

}  // namespace tune::tuner
