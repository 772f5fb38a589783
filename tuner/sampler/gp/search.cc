// Where the acquisition is greatest: random rows find the hills, climbs find their tops.
//
// The problem. The expected improvement is flat far from the data and has many hills, so one climb
// from anywhere ends on some hill, not on the highest. And rows are of numbers, grids and
// categories at once; gradients serve the first kind only.
//
//   look around   160 to 512 rows, fewer the more rows the model has: three quarters uniform, one
//                 quarter steps from the best trials, of up to 1/2, 1/4, ... 1/64 of the range in a
//                 few features, since the hill beside the best trial is narrow and uniform rows may
//                 miss it
//   climb         from the best 4 of them, at most twice each: numbers together along the gradient
//                 by L-BFGS (minimize.h), in units of their length scales, at most 15 steps; then
//                 grids and categories one at a time, to the neighbouring values, a tenth of the
//                 range away, and to all categories (of more than 12: to 12 drawn at random)
//
// Why it is right. A climb moves only where the score rises, so the result is never worse than the
// best row that was looked at. Each row is made canonical before it is scored: put on its grids,
// what conditions switch off removed. So the score belongs to the point that will be proposed, not
// to one beside it. At a bound the slope that leads out counts as 0, and steps are clamped. Rows
// that must not be proposed score minus infinity.
//
// Everything compares logarithms of the expected improvement (improvement.h): the improvement
// itself is 0 in floating point over most of the space, and its gradient too.

#include "tuner/sampler/gp/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tuner/sampler/gp/improvement.h"
#include "tuner/sampler/gp/minimize.h"

namespace tune::tuner {
namespace {

constexpr std::size_t kClimbs = 4;
constexpr int kClimbSteps = 15;
constexpr int kClimbRounds = 2;
/// Categories that are all tried; of more, so many drawn at random are.
constexpr std::size_t kCategoriesTried = 12;
/// The score of a row that must not be proposed.
constexpr double kNever = -std::numeric_limits<double>::infinity();

using Row = std::vector<double>;

/// Rows that are looked at, fewer the more a prediction costs.
std::size_t candidate_count(const GaussianProcess& model) {
    return std::clamp<std::size_t>(40'000 / std::max<std::size_t>(model.row_count(), 1), 160, 512);
}

class Search {
public:
    Search(const SearchProblem& problem, UniformSource& source, std::uint64_t trial)
        : problem_(problem), features_(problem.encoding.features()) {
        const std::size_t count = candidate_count(*problem.model);
        uniforms_.resize(count * (features_.size() + 1) * 2);
        source.fill(trial, stream_key("candidates of the acquisition"), uniforms_);
    }

    Row run() {
        look_around();
        std::stable_sort(found_.begin(), found_.end(),
                         [](const Found& a, const Found& b) { return a.score > b.score; });
        Found best = found_.front();
        for (std::size_t i = 0; i < std::min(kClimbs, found_.size()); ++i) {
            const Found top = climb(found_[i]);
            if (top.score > best.score) best = top;
        }
        return best.row;
    }

private:
    struct Found {
        Row row;
        double score;
    };

    double next_uniform() {
        const double uniform = uniforms_[at_uniform_ % uniforms_.size()];
        ++at_uniform_;
        return uniform;
    }

    bool is_forbidden(const Row& row) const {
        return problem_.is_forbidden && problem_.is_forbidden(row);
    }

    double score_of(const GaussianProcess::Prediction& prediction) const {
        return log_expected_improvement(prediction.mean, prediction.variance,
                                        problem_.model->best_mean())
            .value;
    }

    double score(const Row& row) {
        if (is_forbidden(row)) return kNever;
        return score_of(problem_.model->predict(
            Eigen::Map<const Eigen::VectorXd>(row.data(), static_cast<Eigen::Index>(row.size()))));
    }

    void add(Row row) {
        hold_fixed(row);
        found_.push_back({problem_.canonical(row), 0});
    }

    /// Of all that were added, at once.
    void score_added() {
        Eigen::MatrixXd rows(static_cast<Eigen::Index>(found_.size()),
                             static_cast<Eigen::Index>(features_.size()));
        for (std::size_t i = 0; i < found_.size(); ++i)
            rows.row(static_cast<Eigen::Index>(i)) =
                Eigen::Map<const Eigen::RowVectorXd>(found_[i].row.data(), rows.cols());
        const auto predictions = problem_.model->predict_all(rows);
        for (std::size_t i = 0; i < found_.size(); ++i)
            found_[i].score = is_forbidden(found_[i].row) ? kNever : score_of(predictions[i]);
    }

    void hold_fixed(Row& row) const {
        for (std::size_t j = 0; j < row.size(); ++j)
            if (problem_.fixed.is_fixed[j]) row[j] = problem_.fixed.values[j];
    }

    double random_value(std::size_t j) {
        const double uniform = next_uniform();
        if (!features_[j].is_category())
            return problem_.low[j] + (problem_.high[j] - problem_.low[j]) * uniform;
        return features_[j].axis.category_at(uniform);
    }

    void look_around() {
        const std::size_t count = candidate_count(*problem_.model);
        const std::size_t near = problem_.starts.empty() ? 0 : count / 4;
        for (std::size_t i = 0; i < count - near; ++i) {
            Row row(features_.size());
            for (std::size_t j = 0; j < row.size(); ++j) row[j] = random_value(j);
            add(std::move(row));
        }
        for (std::size_t i = 0; i < near; ++i)
            add(stepped(problem_.starts[i % problem_.starts.size()], i));
        score_added();
    }

    /// A row near `start`: a few features moved, by less and less.
    Row stepped(Row row, std::size_t turn) {
        const double width = std::pow(0.5, static_cast<double>(turn % 6) + 1);
        const double share = std::min(1.0, 2.0 / static_cast<double>(row.size()));
        for (std::size_t j = 0; j < row.size(); ++j) {
            const bool is_moved = next_uniform() < std::max(share, 0.15);
            const double other = random_value(j);
            if (!is_moved) continue;
            row[j] =
                features_[j].is_category()
                    ? other
                    : std::clamp(row[j] + width * (2 * other - problem_.low[j] - problem_.high[j]),
                                 problem_.low[j], problem_.high[j]);
        }
        return row;
    }

    Found climb(Found from) {
        for (int round = 0; round < kClimbRounds; ++round) {
            const double before = from.score;
            climb_numbers(from);
            for (std::size_t j = 0; j < features_.size(); ++j)
                if (!problem_.fixed.is_fixed[j]) try_neighbours(from, j);
            if (from.score - before < 1e-3) break;
        }
        return from;
    }

    /// Whether the climb may move this feature.
    bool is_free(std::size_t j) const {
        return !features_[j].is_category() && !features_[j].is_stepped() &&
               !problem_.fixed.is_fixed[j];
    }

    /// L-BFGS within the bounds, in units of the length scales, in which all features matter alike.
    /// Rows on a grid move there only in try_neighbours.
    void climb_numbers(Found& at) {
        const auto size = static_cast<Eigen::Index>(at.row.size());
        const Eigen::ArrayXd lengths =
            (-0.5 * problem_.model->parameters().inverse_squared_lengths).exp().min(1.0);
        Eigen::VectorXd by_mean;
        Eigen::VectorXd by_variance;
        const auto downhill = [&](const Row& row) {
            const auto prediction = problem_.model->predict(
                Eigen::Map<const Eigen::VectorXd>(row.data(), size), by_mean, by_variance);
            const LogImprovement improvement = log_expected_improvement(
                prediction.mean, prediction.variance, problem_.model->best_mean());
            Eigen::VectorXd gradient =
                -(improvement.by_mean * by_mean + improvement.by_variance * by_variance);
            gradient.array() *= lengths;
            for (std::size_t j = 0; j < features_.size(); ++j) {
                double& slope = gradient[static_cast<Eigen::Index>(j)];
                const bool is_held = (row[j] <= problem_.low[j] && slope > 0) ||
                                     (row[j] >= problem_.high[j] && slope < 0);
                if (!is_free(j) || is_held) slope = 0;
            }
            return gradient;
        };
        Eigen::VectorXd gradient = downhill(at.row);
        LbfgsMemory memory;
        for (int step = 0; step < kClimbSteps; ++step) {
            if (!(gradient.norm() > 1e-6)) return;
            Eigen::VectorXd direction = memory.direction(gradient);
            if (!(gradient.dot(direction) < 0)) direction = -gradient;
            double length = std::min(1.0, 0.5 / direction.cwiseAbs().maxCoeff());
            bool has_risen = false;
            Row next;
            double value = 0;
            for (int trial = 0; trial < 5 && !has_risen; ++trial, length *= 0.25) {
                next = at.row;
                for (std::size_t j = 0; j < next.size(); ++j) {
                    const auto index = static_cast<Eigen::Index>(j);
                    if (is_free(j))
                        next[j] = std::clamp(next[j] + length * direction[index] * lengths[index],
                                             problem_.low[j], problem_.high[j]);
                }
                next = problem_.canonical(next);
                value = score(next);
                has_risen = value > at.score;
            }
            if (!has_risen) return;
            const bool is_flat = value - at.score < 1e-4;
            Eigen::VectorXd moved(size);
            for (Eigen::Index j = 0; j < size; ++j)
                moved[j] =
                    (next[static_cast<std::size_t>(j)] - at.row[static_cast<std::size_t>(j)]) /
                    lengths[j];
            at = {std::move(next), value};
            if (is_flat) return;
            const Eigen::VectorXd before = gradient;
            gradient = downhill(at.row);
            memory.remember(std::move(moved), gradient - before);
        }
    }

    void try_neighbours(Found& at, std::size_t j) {
        const Feature& feature = features_[j];
        std::vector<double> values;
        if (feature.is_category()) {
            const auto categories = static_cast<std::size_t>(feature.axis.categories);
            for (std::size_t i = 0; i < std::min(categories, kCategoriesTried); ++i)
                values.push_back(categories <= kCategoriesTried ? static_cast<double>(i)
                                                                : random_value(j));
        } else if (feature.is_stepped()) {
            const double low = feature.axis.value_low;
            const double cells = (feature.axis.value_high - low) / feature.axis.step;
            const double here = feature.axis.value(feature.axis.quantile(at.row[j]));
            for (const double jump : {1.0, std::max(1.0, std::round(cells / 10))})
                for (const double sign : {-1.0, 1.0})
                    values.push_back(
                        problem_.encoding.feature_value(j, here + sign * jump * feature.axis.step));
        }
        for (const double value : values) {
            Row next = at.row;
            next[j] = value;
            next = problem_.canonical(next);
            const double reached = score(next);
            if (reached > at.score) at = {std::move(next), reached};
        }
    }

    const SearchProblem& problem_;
    const std::vector<Feature>& features_;
    std::vector<double> uniforms_;
    std::size_t at_uniform_ = 0;
    std::vector<Found> found_;
};

}  // namespace

std::vector<double> find_best_row(const SearchProblem& problem, UniformSource& source,
                                  std::uint64_t trial) {
    return Search(problem, source, trial).run();
}

}  // namespace tune::tuner
