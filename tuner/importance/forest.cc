// CART regression trees on bootstrap samples. A node tries every feature: for an ordered one every
// gap between sorted values, with the sums of the left part updated on the way; for categories the
// order of their means, in which the best subset is a prefix (Breiman 1984). Random numbers come
// from a counter per tree and node, so a tree depends on nothing but seed and number. The leaves
// carry their boxes, cut along with the splits.

#include "tuner/importance/forest.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tuner/sampler/uniform.h"

namespace tune::tuner {
namespace {

using Rows = std::vector<std::uint32_t>;

struct Split {
    double gain = 0;
    std::size_t feature = 0;
    double threshold = 0;           // ordered: at most goes left
    std::vector<char> goes_left{};  // unordered: a flag a category
};

class Grower {
public:
    Grower(std::span<const Feature> features, std::span<const double> targets, TreeOptions options)
        : features_(features), targets_(targets), options_(options), source_(options.seed) {}

    std::vector<Leaf> grow() {
        const std::size_t wanted = std::min(targets_.size(), options_.rows_max);
        std::vector<double> draws(wanted);
        source_.fill(options_.number, stream_key("bootstrap"), draws);
        Rows rows;
        rows.reserve(wanted);
        for (const double draw : draws)
            rows.push_back(static_cast<std::uint32_t>(draw * static_cast<double>(targets_.size())));
        Leaf root;
        root.low.assign(features_.size(), 0);
        root.high.assign(features_.size(), 1);
        root.categories.resize(features_.size());
        for (std::size_t i = 0; i < features_.size(); ++i)
            root.categories[i].assign(features_[i].categories, 1);
        split(std::move(root), std::move(rows), 0);
        return std::move(leaves_);
    }

private:
    void split(Leaf box, Rows rows, int depth) {
        double sum = 0;
        for (const std::uint32_t row : rows) sum += targets_[row];
        box.value = sum / static_cast<double>(rows.size());
        const bool is_pure = std::all_of(rows.begin(), rows.end(), [&](std::uint32_t row) {
            return targets_[row] == targets_[rows[0]];
        });
        const Split best = is_pure || depth == options_.depth_max ? Split{} : best_split(rows, sum);
        if (best.gain <= 0) {
            leaves_.push_back(std::move(box));
            return;
        }
        const std::vector<double>& values = features_[best.feature].values;
        const auto middle = std::partition(rows.begin(), rows.end(), [&](std::uint32_t row) {
            return best.goes_left.empty()
                       ? values[row] <= best.threshold
                       : best.goes_left[static_cast<std::size_t>(values[row])] != 0;
        });
        Leaf left = cut(box, best, true);
        Leaf right = cut(box, best, false);
        split(std::move(left), Rows(rows.begin(), middle), depth + 1);
        split(std::move(right), Rows(middle, rows.end()), depth + 1);
    }

    static Leaf cut(const Leaf& box, const Split& split, bool is_left) {
        Leaf part = box;
        const double before = box.length(split.feature);
        if (split.goes_left.empty()) {
            (is_left ? part.high : part.low)[split.feature] = split.threshold;
        } else {
            std::vector<char>& categories = part.categories[split.feature];
            for (std::size_t i = 0; i < categories.size(); ++i)
                if ((split.goes_left[i] != 0) != is_left) categories[i] = 0;
        }
        part.volume *= part.length(split.feature) / before;
        return part;
    }

    Split best_split(const Rows& rows, double sum) {
        // Looked at in random order, so that of features that split equally well each has a chance:
        // two rows can be told apart by any.
        std::vector<double> draws(features_.size());
        source_.fill((options_.number << 32) + nodes_++, stream_key("order"), draws);
        std::vector<std::size_t> order(features_.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::sort(order.begin(), order.end(),
                  [&](std::size_t a, std::size_t b) { return draws[a] < draws[b]; });
        Split best;
        for (const std::size_t feature : order) {
            if (features_[feature].categories == 0)
                try_ordered(feature, rows, sum, best);
            else
                try_unordered(feature, rows, sum, best);
        }
        return best;
    }

    /// What a split lowers the squared error by, up to a constant of the node.
    static double gain_of(double left_sum, double left_count, double sum, double count) {
        const double right_sum = sum - left_sum;
        const double right_count = count - left_count;
        return left_sum * left_sum / left_count + right_sum * right_sum / right_count -
               sum * sum / count;
    }

    void try_ordered(std::size_t feature, const Rows& rows, double sum, Split& best) {
        sorted_.clear();
        for (const std::uint32_t row : rows)
            sorted_.emplace_back(features_[feature].values[row], targets_[row]);
        std::sort(sorted_.begin(), sorted_.end(),
                  [](const auto& a, const auto& b) { return a.first < b.first; });
        const auto count = static_cast<double>(sorted_.size());
        double left_sum = 0;
        for (std::size_t i = 1; i < sorted_.size(); ++i) {
            left_sum += sorted_[i - 1].second;
            if (sorted_[i - 1].first == sorted_[i].first) continue;
            const double gain = gain_of(left_sum, static_cast<double>(i), sum, count);
            if (gain <= best.gain * (1 + 1e-12)) continue;
            best = {.gain = gain,
                    .feature = feature,
                    .threshold = (sorted_[i - 1].first + sorted_[i].first) / 2};
        }
    }

    /// Categories by their means: the best of all subsets is a prefix of that order (Breiman 1984).
    void try_unordered(std::size_t feature, const Rows& rows, double sum, Split& best) {
        struct Category {
            std::size_t index;
            double sum = 0;
            double count = 0;
        };
        std::vector<Category> seen(features_[feature].categories);
        for (std::size_t i = 0; i < seen.size(); ++i) seen[i].index = i;
        for (const std::uint32_t row : rows) {
            Category& category = seen[static_cast<std::size_t>(features_[feature].values[row])];
            category.sum += targets_[row];
            category.count += 1;
        }
        std::erase_if(seen, [](const Category& category) { return category.count == 0; });
        std::sort(seen.begin(), seen.end(), [](const Category& a, const Category& b) {
            return a.sum / a.count < b.sum / b.count;
        });
        double left_sum = 0;
        double left_count = 0;
        for (std::size_t i = 1; i < seen.size(); ++i) {
            left_sum += seen[i - 1].sum;
            left_count += seen[i - 1].count;
            const double gain =
                gain_of(left_sum, left_count, sum, static_cast<double>(rows.size()));
            if (gain <= best.gain * (1 + 1e-12)) continue;
            best = {.gain = gain, .feature = feature};
            best.goes_left.assign(features_[feature].categories, 0);
            for (std::size_t j = 0; j < i; ++j) best.goes_left[seen[j].index] = 1;
        }
    }

    std::span<const Feature> features_;
    std::span<const double> targets_;
    TreeOptions options_;
    CounterSource source_;
    std::uint64_t nodes_ = 0;
    std::vector<std::pair<double, double>> sorted_;  // value and target, kept for its memory
    std::vector<Leaf> leaves_;
};

}  // namespace

double Leaf::length(std::size_t feature) const {
    const std::vector<char>& flags = categories[feature];
    if (flags.empty()) return high[feature] - low[feature];
    return static_cast<double>(std::count(flags.begin(), flags.end(), 1)) /
           static_cast<double>(flags.size());
}

std::vector<Leaf> grow_tree(std::span<const Feature> features, std::span<const double> targets,
                            TreeOptions options) {
    return Grower(features, targets, options).grow();
}

}  // namespace tune::tuner
