// ParzenEstimator::log_density: lays the points out as the scoring kernel reads them and ends the
// sums. Split from parzen.cc, which keeps the columns.

#include <algorithm>
#include <cmath>

#include "tuner/sampler/parzen.h"
#include "tuner/sampler/score.h"

namespace tune::tuner {
namespace {

ScoreView view_of(const ParzenEstimator& estimator) {
    ScoreView view;

    view.base = estimator.base().data();
    view.weights = estimator.weights().data();
    view.rows = estimator.size();
    for (std::size_t j = 0; j < estimator.axes().size(); ++j) {
        switch (estimator.axes()[j].kind) {
            case Axis::Kind::kContinuous: {
                const KernelColumns& kernel = estimator.kernel(j);
                view.continuous.push_back({kernel.mu.data(), kernel.inverse.data()});
                break;
            }
            case Axis::Kind::kCategory:
                view.categories.push_back({estimator.category(j).data(),
                                           estimator.log_own_category(j),
                                           estimator.log_other_category(j)});
                break;
            case Axis::Kind::kStepped: {
                const KernelColumns& kernel = estimator.kernel(j);
                kernel.cells->trim();
                view.stepped.push_back({kernel.mu.data(), kernel.inverse.data()});
                break;
            }
        }
    }
    return view;
}

/// Points as the scoring kernel reads them, and the prior's part of their sums.
struct Layout {
    std::vector<double> points;        // [count][continuous, then categories]
    std::vector<std::uint32_t> cells;  // [count][stepped]
    std::vector<double> log_prior;     // [count]
};

/// Fills one stepped axis, the `slot`-th of `stepped`: points in one cell share it.
void lay_out_cells(const ParzenEstimator& estimator, std::size_t axis, std::size_t slot,
                   std::size_t stepped, std::span<const double> points, ScoreView& view,
                   Layout& layout) {
    const KernelColumns& kernel = estimator.kernel(axis);
    const std::size_t axes = estimator.axes().size();
    const std::size_t begin = view.cells.size();
    std::vector<double> positions;
    std::vector<double> log_priors;
    for (std::size_t c = 0; c < layout.log_prior.size(); ++c) {
        const double position = points[c * axes + axis];
        const auto found = static_cast<std::size_t>(
            std::find(positions.begin(), positions.end(), position) - positions.begin());
        if (found == positions.size()) {
            CellTable* table = kernel.cells->table(position, estimator.size());
            view.cells.push_back({table->low, table->high, table->log_mass.data(),
                                  kernel.cells->is_keeping() ? 1u : 0u});
            positions.push_back(position);
            log_priors.push_back(table->log_prior - kernel.prior_log_norm);
        }
        layout.cells[c * stepped + slot] = static_cast<std::uint32_t>(begin + found);
        layout.log_prior[c] += log_priors[found];
    }
}

Layout lay_out(const ParzenEstimator& estimator, std::span<const double> points, std::size_t count,
               ScoreView& view) {
    const std::span<const Axis> axes = estimator.axes();
    const std::size_t stride = view.stride();
    const std::size_t stepped = view.stepped.size();
    Layout layout{std::vector<double>(count * stride), std::vector<std::uint32_t>(count * stepped),
                  std::vector<double>(count)};
    std::size_t continuous = 0;
    std::size_t category = view.continuous.size();
    std::size_t slot = 0;
    for (std::size_t j = 0; j < axes.size(); ++j) {
        if (axes[j].kind == Axis::Kind::kStepped) {
            lay_out_cells(estimator, j, slot++, stepped, points, view, layout);
            continue;
        }
        const bool is_category = axes[j].kind == Axis::Kind::kCategory;
        const std::size_t at = is_category ? category++ : continuous++;
        const bool is_alike = is_category && axes[j].shares.empty();
        const double log_share = is_alike ? estimator.log_prior(j, 0) : 0;
        for (std::size_t c = 0; c < count; ++c) {
            const double position = points[c * axes.size() + j];
            layout.points[c * stride + at] = position;
            layout.log_prior[c] += is_alike ? log_share : estimator.log_prior(j, position);
        }
    }
    return layout;
}

}  // namespace

void ParzenEstimator::log_density(std::span<const double> points, std::span<double> out) const {
    ScoreView view = view_of(*this);
    const Layout layout = lay_out(*this, points, out.size(), view);
    std::vector<LogSum> sums(out.size());
    for (std::size_t c = 0; c < out.size(); ++c) {
        // The prior is the last component; it is counted first, as a first bound.
        sums[c].max = layout.log_prior[c];
        sums[c].lanes[0] = 1;
    }
    add_kernels(view, layout.points, layout.cells, sums);
    const double log_weight_sum = std::log(weight_sum_);
    for (std::size_t c = 0; c < out.size(); ++c) {
        double total = 0;
        for (const double lane : sums[c].lanes) total += lane;
        out[c] = sums[c].max + std::log(total) - log_weight_sum;
    }
}

}  // namespace tune::tuner
