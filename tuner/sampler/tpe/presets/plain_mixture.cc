// Two older rule sets for the densities of TPE, for people who compare or come from elsewhere.
//
//   hyperopt  (Hyperopt 0.3.0, tpe.py) the prior takes part in the sorted means; the outermost
//             kernels look inwards; a single observation gets half the prior's width; the mixture
//             is truncated as a whole
//   watanabe  (arXiv:2304.11127, section 4's recommendation) prior and end points take part in the
//             gaps; the smallest width is the larger of 3 % of the range and 1/(n+2)^2 of it
//
// Deviation from Hyperopt: grids own cells here as everywhere in this program, where Hyperopt
// rounds draws to multiples of q, which can leave the bounds; and logarithmic axes are normalised,
// which Hyperopt forgets.

#include "tuner/sampler/tpe/presets/plain_mixture.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "tuner/sampler/normal.h"

namespace tune::tuner {
namespace {

constexpr std::size_t kFullWeightCount = 25;
constexpr double kLogRootTau = 0.91893853320467274178;

/// Gap rules. `mu` has the prior last; the result is in the same order.
std::vector<double> widths(const Axis& axis, const std::vector<double>& mu, MixtureRule rule) {
    const std::size_t all = mu.size();
    const auto n = static_cast<double>(all - 1);
    std::vector<double> sigma(all, axis.range);
    sigma.back() = axis.prior_width();
    if (all == 1) return sigma;
    std::vector<std::size_t> order(all);
    std::iota(order.begin(), order.end(), std::size_t{0});
    // The prior stands before observations that equal it, as searchsorted puts it.
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        if (mu[a] != mu[b]) return mu[a] < mu[b];
        return (a + 1 == all ? 0 : a + 1) < (b + 1 == all ? 0 : b + 1);
    });
    const bool has_ends = rule == MixtureRule::kWatanabe;
    for (std::size_t i = 0; i < all; ++i) {
        const double here = mu[order[i]];
        double left = i > 0 ? here - mu[order[i - 1]] : -1;
        double right = i + 1 < all ? mu[order[i + 1]] - here : -1;
        if (has_ends && i == 0) left = here - axis.low;
        if (has_ends && i + 1 == all) right = axis.high - here;
        sigma[order[i]] = std::max(left, right);
    }
    double least = axis.range / std::min(100.0, n + 2);
    if (rule == MixtureRule::kWatanabe)
        least = axis.range * std::max(0.03, 1 / ((n + 2) * (n + 2)));
    if (rule == MixtureRule::kHyperopt && all == 2) sigma[0] = 0.5 * axis.prior_width();
    for (double& width : sigma) width = std::clamp(width, least, axis.range);
    sigma.back() = axis.prior_width();
    return sigma;
}

std::size_t choose(const std::vector<double>& shares, double uniform) {
    double sum = 0;
    for (std::size_t i = 0; i + 1 < shares.size(); ++i) {
        sum += shares[i];
        if (uniform < sum) return i;
    }
    return shares.size() - 1;
}

void normalise(std::vector<double>& values) {
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    for (double& value : values) value /= sum;
}

}  // namespace

std::vector<double> weights_by_age(std::size_t count) {
    std::vector<double> weights(count, 1.0);
    if (count <= kFullWeightCount) return weights;
    const std::size_t ramp = count - kFullWeightCount;
    const double first = 1.0 / static_cast<double>(count);
    for (std::size_t i = 0; i < ramp; ++i)
        weights[i] =
            first +
            (ramp > 1 ? static_cast<double>(i) * (1 - first) / static_cast<double>(ramp - 1) : 0);
    return weights;
}

PlainMixture::PlainMixture(std::span<const Axis> axes, const std::vector<std::vector<double>>& rows,
                           std::vector<double> weights, MixtureRule rule)
    : axes_(axes.begin(), axes.end()), rule_(rule), weights_(std::move(weights)) {
    TUNE_CHECK(weights_.size() == rows.size() + 1, "one weight a row and one for the prior");
    TUNE_CHECK(rule_ == MixtureRule::kWatanabe || axes_.size() == 1,
               "Hyperopt's rules know one axis at a time");
    normalise(weights_);
    for (std::size_t j = 0; j < axes_.size(); ++j) {
        std::vector<double> column;
        for (const auto& row : rows) column.push_back(row[j]);
        if (axes_[j].kind == Axis::Kind::kCategory) {
            Marginal marginal;
            marginal.codes = std::move(column);
            if (rule_ == MixtureRule::kHyperopt) count_categories(marginal, axes_[j]);
            marginals_.push_back(std::move(marginal));
        } else {
            marginals_.push_back(numbers(axes_[j], std::move(column)));
        }
    }
    chances_ = weights_;
    const bool is_number = axes_[0].kind != Axis::Kind::kCategory;
    if (rule_ == MixtureRule::kHyperopt && is_number) {
        for (std::size_t i = 0; i < chances_.size(); ++i) chances_[i] *= marginals_[0].mass[i];
        log_accepted_ = std::log(std::accumulate(chances_.begin(), chances_.end(), 0.0));
        normalise(chances_);
    }
}

PlainMixture::Marginal PlainMixture::numbers(const Axis& axis, std::vector<double> mu) const {
    Marginal marginal;
    marginal.mu = std::move(mu);
    marginal.mu.push_back(axis.prior_mean());
    marginal.sigma = widths(axis, marginal.mu, rule_);
    for (std::size_t i = 0; i < marginal.mu.size(); ++i)
        marginal.mass.push_back(1 - normal_cdf((axis.low - marginal.mu[i]) / marginal.sigma[i]) -
                                normal_cdf((marginal.mu[i] - axis.high) / marginal.sigma[i]));
    return marginal;
}

/// One count for each category before any was seen.
void PlainMixture::count_categories(Marginal& marginal, const Axis& axis) const {
    marginal.shares.assign(static_cast<std::size_t>(axis.categories), 1.0);
    for (std::size_t k = 0; k < axis.shares.size(); ++k)
        marginal.shares[k] = axis.categories * axis.category_share(static_cast<double>(k));
    const double prior = weights_.back();
    for (std::size_t i = 0; i < marginal.codes.size(); ++i)
        marginal.shares[static_cast<std::size_t>(marginal.codes[i])] += weights_[i] / prior;
    normalise(marginal.shares);
}

double PlainMixture::log_kernel(std::size_t axis_index, std::size_t row, double position) const {
    const Axis& axis = axes_[axis_index];
    const Marginal& marginal = marginals_[axis_index];
    if (axis.kind == Axis::Kind::kCategory) {
        if (row == marginal.codes.size()) return -std::log(axis.categories);
        const double smoothing = 1 / (static_cast<double>(marginal.codes.size()) + 1);
        return std::log((smoothing + (marginal.codes[row] == position ? 1 : 0)) /
                        (1 + axis.categories * smoothing));
    }
    const double mu = marginal.mu[row];
    const double sigma = marginal.sigma[row];
    const double own = rule_ == MixtureRule::kWatanabe ? std::log(marginal.mass[row]) : 0;
    if (axis.kind == Axis::Kind::kContinuous) {
        const double z = (position - mu) / sigma;
        return -0.5 * z * z - kLogRootTau - std::log(sigma) - own;
    }
    const double value = axis.log ? std::exp(position) : position;
    return log_normal_mass((axis.cell_low(value) - mu) / sigma,
                           (axis.cell_high(value) - mu) / sigma) -
           own;
}

double PlainMixture::log_density(std::span<const double> point) const {
    if (!marginals_[0].shares.empty())
        return std::log(marginals_[0].shares[static_cast<std::size_t>(point[0])]);
    std::vector<double> logs(weights_.size());
    for (std::size_t i = 0; i < weights_.size(); ++i) {
        logs[i] = std::log(weights_[i]);
        for (std::size_t j = 0; j < axes_.size(); ++j) logs[i] += log_kernel(j, i, point[j]);
    }
    const double most = *std::max_element(logs.begin(), logs.end());
    double sum = 0;
    for (const double value : logs) sum += std::exp(value - most);
    return most + std::log(sum) - log_accepted_;
}

std::size_t PlainMixture::component(double uniform) const {
    return choose(chances_, uniform);
}

double PlainMixture::draw_position(std::size_t axis_index, std::size_t row, double uniform) const {
    const Axis& axis = axes_[axis_index];
    const Marginal& marginal = marginals_[axis_index];
    if (axis.kind == Axis::Kind::kCategory) {
        if (!marginal.shares.empty()) return static_cast<double>(choose(marginal.shares, uniform));
        std::vector<double> shares;
        for (double code = 0; code < axis.categories; ++code)
            shares.push_back(std::exp(log_kernel(axis_index, row, code)));
        return static_cast<double>(choose(shares, uniform));
    }
    const double mu = marginal.mu[row];
    const double sigma = marginal.sigma[row];
    const double under = normal_cdf((axis.low - mu) / sigma);
    const double over = normal_cdf((mu - axis.high) / sigma);
    // Not 0 below: the quantile there is infinite.
    const double z = truncated_normal_quantile(std::max(under, std::numeric_limits<double>::min()),
                                               over, uniform);
    return std::clamp(mu + sigma * z, axis.low, axis.high);
}

}  // namespace tune::tuner
