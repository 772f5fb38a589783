#pragma once
// Regression trees over boxes of [0, 1]^d, as fANOVA needs them: it asks a tree for its leaves and
// their boxes, never for a prediction. Private to tuner/importance (and its tests).

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tune::tuner {

/// One column of the data. Unordered: values are categories 0..categories-1.
struct Feature {
    std::size_t categories = 0;  // 0: ordered, values in [0, 1]
    std::vector<double> values;  // one a row
};

/// A leaf: its mean and, a feature, the part of the axis it covers.
struct Leaf {
    double value = 0;
    double volume = 1;  // of the whole space
    /// Ordered features: the interval [low, high]; others: unused.
    std::vector<double> low;
    std::vector<double> high;
    /// Unordered features: a flag a category; ordered ones: empty.
    std::vector<std::vector<char>> categories;

    /// The share of the axis that the leaf covers.
    [[nodiscard]] double length(std::size_t feature) const;
};

struct TreeOptions {
    int depth_max = 64;
    std::size_t rows_max = 2000;  // drawn with replacement; at most as many as there are
    std::uint64_t seed = 0;
    std::uint64_t number = 0;  // of the tree
};

/// The leaves of one tree, grown until every leaf holds one value, on a bootstrap sample of the
/// rows. Splits minimise the squared error; of equal ones a random feature's wins. Deterministic in
/// seed and number. Cost O(rows * log(rows)^2 * features). REQUIRES: at least one row.
[[nodiscard]] std::vector<Leaf> grow_tree(std::span<const Feature> features,
                                          std::span<const double> targets, TreeOptions options);

}  // namespace tune::tuner
