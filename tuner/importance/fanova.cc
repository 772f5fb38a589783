// fANOVA (Hutter, Hoos, Leyton-Brown 2014). A tree is a partition of the space into boxes with one
// value each. Its marginal along a parameter at a point is the sum, over the leaves that cover the
// point, of value times the volume of the leaf's other sides: a step function whose edges are those
// of the leaves. Mean and variance of it are exact sums over these steps (a sweep over sorted
// edges, or one sum per category); the share is that variance over the variance of the whole tree.
// The result is the mean over the trees, and their standard deviation tells how far to trust it.

#include "tuner/importance/fanova.h"

#include <algorithm>
#include <cmath>

#include "tuner/importance/forest.h"

namespace tune::tuner {
namespace {

/// [0, 1] over the domain, half a step beyond its ends where it has steps, so that each value has
/// an equal part of the axis.
double unit_of(const Parameter& parameter, double internal) {
    const double half = parameter.log ? 0 : parameter.step / 2;
    const double low = parameter.log ? std::log(parameter.low) : parameter.low - half;
    const double high = parameter.log ? std::log(parameter.high) : parameter.high + half;
    return ((parameter.log ? std::log(internal) : internal) - low) / (high - low);
}

Feature feature_of(const Parameter& parameter, std::size_t index, std::span<const Point> points,
                   const std::vector<std::size_t>& rows) {
    Feature feature;
    const bool is_choice = parameter.kind == Kind::kChoice;
    if (is_choice) feature.categories = static_cast<std::size_t>(parameter.count());
    feature.values.reserve(rows.size());
    for (const std::size_t row : rows) {
        const double internal = points[row][index];
        if (is_choice)
            feature.values.push_back(is_active(internal) ? internal : 0);
        else
            feature.values.push_back(is_active(internal) ? unit_of(parameter, internal) : 0.5);
    }
    return feature;
}

/// Parts of one axis and the tree's marginal on each.
struct Marginal {
    std::vector<double> lengths;
    std::vector<double> means;

    [[nodiscard]] double variance() const {
        double mean = 0;
        for (std::size_t i = 0; i < means.size(); ++i) mean += lengths[i] * means[i];
        double sum = 0;
        for (std::size_t i = 0; i < means.size(); ++i)
            sum += lengths[i] * (means[i] - mean) * (means[i] - mean);
        return sum;
    }
};

/// What the leaf adds to the marginal where it covers the axis: its value times the volume of its
/// other sides.
double part_of(const Leaf& leaf, std::size_t feature) {
    return leaf.value * leaf.volume / leaf.length(feature);
}

Marginal ordered_marginal(const std::vector<Leaf>& leaves, std::size_t feature) {
    std::vector<double> edges;
    for (const Leaf& leaf : leaves) {
        edges.push_back(leaf.low[feature]);
        edges.push_back(leaf.high[feature]);
    }
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    Marginal marginal;
    std::vector<double> steps(edges.size(), 0);
    const auto place = [&](double edge) {
        return static_cast<std::size_t>(std::lower_bound(edges.begin(), edges.end(), edge) -
                                        edges.begin());
    };
    for (const Leaf& leaf : leaves) {
        steps[place(leaf.low[feature])] += part_of(leaf, feature);
        steps[place(leaf.high[feature])] -= part_of(leaf, feature);
    }
    double mean = 0;
    for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
        mean += steps[i];
        marginal.lengths.push_back(edges[i + 1] - edges[i]);
        marginal.means.push_back(mean);
    }
    return marginal;
}

Marginal unordered_marginal(const std::vector<Leaf>& leaves, std::size_t feature,
                            std::size_t categories) {
    Marginal marginal;
    marginal.lengths.assign(categories, 1 / static_cast<double>(categories));
    marginal.means.assign(categories, 0);
    for (const Leaf& leaf : leaves) {
        const double part = part_of(leaf, feature);
        for (std::size_t i = 0; i < categories; ++i)
            if (leaf.categories[feature][i] != 0) marginal.means[i] += part;
    }
    return marginal;
}

double variance_of(const std::vector<Leaf>& leaves) {
    Marginal whole;
    for (const Leaf& leaf : leaves) {
        whole.lengths.push_back(leaf.volume);
        whole.means.push_back(leaf.value);
    }
    return whole.variance();
}

/// The share of each feature in each tree whose variance is not zero.
std::vector<std::vector<double>> shares_by_tree(const std::vector<Feature>& features,
                                                const std::vector<double>& targets,
                                                FanovaOptions options) {
    std::vector<std::vector<double>> shares(features.size());
    for (int tree = 0; tree < options.trees; ++tree) {
        const std::vector<Leaf> leaves = grow_tree(features, targets,
                                                   {.depth_max = options.depth_max,
                                                    .seed = options.seed,
                                                    .number = static_cast<std::uint64_t>(tree)});
        const double variance = variance_of(leaves);
        if (!(variance > 0)) continue;
        for (std::size_t i = 0; i < features.size(); ++i) {
            const Marginal marginal = features[i].categories == 0
                                          ? ordered_marginal(leaves, i)
                                          : unordered_marginal(leaves, i, features[i].categories);
            shares[i].push_back(marginal.variance() / variance);
        }
    }
    return shares;
}

FanovaImportance summary_of(const std::vector<double>& shares) {
    FanovaImportance found;
    if (shares.empty()) return found;
    const auto count = static_cast<double>(shares.size());
    for (const double share : shares) found.share += share / count;
    for (const double share : shares)
        found.spread += (share - found.share) * (share - found.share) / count;
    found.spread = std::sqrt(found.spread);
    return found;
}

}  // namespace

std::vector<FanovaImportance> fanova(const Space& space, std::span<const Point> points,
                                     std::span<const double> values, FanovaOptions options) {
    std::vector<FanovaImportance> found(space.size());
    std::vector<std::size_t> rows;
    std::vector<double> targets;
    double scale = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
        if (!std::isfinite(values[i])) continue;
        rows.push_back(i);
        scale = std::max(scale, std::abs(values[i]));
    }
    if (rows.size() < 2 || scale == 0) return found;
    // Scaled, so that squares of huge values stay finite.
    for (const std::size_t row : rows) targets.push_back(values[row] / scale);
    std::vector<Feature> features;
    std::vector<std::size_t> parameters;
    for (std::size_t i = 0; i < space.size(); ++i) {
        if (space[i].is_single()) continue;
        features.push_back(feature_of(space[i], i, points, rows));
        parameters.push_back(i);
    }
    if (features.empty()) return found;
    const auto shares = shares_by_tree(features, targets, options);
    for (std::size_t i = 0; i < parameters.size(); ++i)
        found[parameters[i]] = summary_of(shares[i]);
    return found;
}

}  // namespace tune::tuner
