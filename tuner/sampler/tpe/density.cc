// ParzenEstimator::log_density: ln of sum_i w_i k_i(x) / sum_i w_i at many points. Split from
// parzen.cc, which keeps the columns; the sum over the kernels is score.cc.
//
// Laying out. A candidate is scored under two estimators with the same axes, the good and the bad
// density, so what does not depend on the observations is done once for both: the values point by
// point, continuous axes first and then categories, as the inner loop reads them; on each stepped
// axis the distinct cells, since candidates drawn from few kernels share them; and the prior's
// part, which is a function of the axes alone.
//
// Summing. Terms are of very different size, so the sum is kept as (largest logarithm so far, sum
// of the terms relative to it). The prior, in truth the last component, is counted first: it gives
// every point a bound below which blocks of kernels can be dropped (score.cc). The lanes of the sum
// are added in a fixed order, so that the result has the same bits on every machine.

#include <algorithm>
#include <cmath>

#include "tuner/sampler/normal.h"
#include "tuner/sampler/tpe/parzen.h"
#include "tuner/sampler/tpe/score.h"

namespace tune::tuner {
namespace {

/// The estimator's columns and what it knows of the points' cells.
ScoreView view_of(const ParzenEstimator& estimator, const Candidates& points) {
    ScoreView view;
    view.base = estimator.base().data();
    view.weights = estimator.weights().data();
    view.rows = estimator.size();
    view.points = points.log_prior.size();
    view.cells.reserve(points.distinct.size());
    for (std::size_t j = 0; j < estimator.axes().size(); ++j) {
        if (estimator.axes()[j].kind == Axis::Kind::kCategory) {
            view.categories.push_back({estimator.category(j).data(), estimator.log_own_category(j),
                                       estimator.log_other_category(j)});
            continue;
        }
        const KernelColumns& kernel = estimator.kernel(j);
        if (estimator.axes()[j].kind == Axis::Kind::kContinuous) {
            view.continuous.push_back({kernel.mu.data(), kernel.inverse.data()});
            continue;
        }
        CellTables& tables = *kernel.cells;
        const bool is_keeping = tables.is_keeping();
        const std::size_t begin = view.cells.size();
        const std::size_t end = points.cells_end[view.stepped.size()];
        if (is_keeping) tables.trim();
        for (std::size_t i = begin; i < end; ++i) {
            const Candidates::Cell& cell = points.distinct[i];
            view.cells.push_back(
                {cell.low, cell.high,
                 is_keeping ? tables.masses(cell.position, cell.low, cell.high) : nullptr});
        }
        view.stepped.push_back({kernel.mu.data(), kernel.inverse.data(),
                                is_keeping ? tables.classes().of() : nullptr, begin, end});
    }
    return view;
}

/// One stepped axis: points in one cell share it.
void lay_out_cells(const ParzenEstimator& estimator, std::size_t axis_index,
                   std::span<const double> points, Candidates& out) {
    const Axis& axis = estimator.axes()[axis_index];
    const double log_norm = estimator.kernel(axis_index).prior_log_norm;
    const std::size_t begin = out.distinct.size();
    std::vector<double> log_priors;
    for (std::size_t c = 0; c < out.log_prior.size(); ++c) {
        const double position = points[c * estimator.axes().size() + axis_index];
        std::size_t at = begin;
        while (at < out.distinct.size() && out.distinct[at].position != position) ++at;
        if (at == out.distinct.size()) {
            const double value = axis.log ? std::exp(position) : position;
            const Candidates::Cell cell{position, axis.cell_low(value), axis.cell_high(value)};
            out.distinct.push_back(cell);
            log_priors.push_back(
                log_normal_mass((cell.low - axis.prior_mean()) / axis.prior_width(),
                                (cell.high - axis.prior_mean()) / axis.prior_width()) -
                log_norm);
        }
        out.cells.push_back(static_cast<std::uint32_t>(at));
        out.log_prior[c] += log_priors[at - begin];
    }
    out.cells_end.push_back(out.distinct.size());
}

}  // namespace

Candidates ParzenEstimator::lay_out(std::span<const double> points, std::size_t count) const {
    const auto is = [](Axis::Kind kind) {
        return [kind](const Axis& axis) { return axis.kind == kind; };
    };
    std::size_t category = static_cast<std::size_t>(
        std::count_if(axes_.begin(), axes_.end(), is(Axis::Kind::kContinuous)));
    const std::size_t stepped = kernels_.size() - category;
    const std::size_t stride = axes_.size() - stepped;
    Candidates out;
    out.values.resize(count * stride);
    out.log_prior.resize(count);
    out.cells.reserve(count * stepped);
    std::size_t continuous = 0;
    for (std::size_t j = 0; j < axes_.size(); ++j) {
        if (axes_[j].kind == Axis::Kind::kStepped) {
            lay_out_cells(*this, j, points, out);
            continue;
        }
        const bool is_category = axes_[j].kind == Axis::Kind::kCategory;
        const std::size_t at = is_category ? category++ : continuous++;
        const bool is_alike = is_category && axes_[j].shares.empty();
        const double log_share = is_alike ? log_prior(j, 0) : 0;
        for (std::size_t c = 0; c < count; ++c) {
            const double position = points[c * axes_.size() + j];
            out.values[c * stride + at] = position;
            out.log_prior[c] += is_alike ? log_share : log_prior(j, position);
        }
    }
    return out;
}

void ParzenEstimator::log_density(const Candidates& points, std::span<double> out) const {
    const ScoreView view = view_of(*this, points);
    std::vector<LogSum> sums(out.size());
    for (std::size_t c = 0; c < out.size(); ++c) {
        // The prior is the last component; it is counted first, as a first bound.
        sums[c].max = points.log_prior[c];
        sums[c].lanes[0] = 1;
    }
    add_kernels(view, points.values, points.cells, sums);
    const double log_weight_sum = std::log(weight_sum_);
    for (std::size_t c = 0; c < out.size(); ++c) {
        double total = 0;
        for (const double lane : sums[c].lanes) total += lane;
        out[c] = sums[c].max + std::log(total) - log_weight_sum;
    }
}

}  // namespace tune::tuner
