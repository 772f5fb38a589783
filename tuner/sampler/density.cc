// ParzenEstimator::log_density: lays the points out as the scoring kernel reads them and ends the
// sums. Split from parzen.cc, which keeps the columns.

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
                view.stepped.push_back({kernel.mu.data(), kernel.inverse.data(),
                                        kernel.classes.data(), kernel.cells.get()});
                break;
            }
        }
    }
    return view;
}

/// One point in the kernel's order, and the tables of its cells.
void lay_out(const ParzenEstimator& estimator, const double* point, std::vector<double>& out,
             std::vector<CellTable*>& tables) {
    const std::span<const Axis> axes = estimator.axes();
    for (std::size_t j = 0; j < axes.size(); ++j)
        if (axes[j].kind == Axis::Kind::kContinuous) out.push_back(point[j]);
    for (std::size_t j = 0; j < axes.size(); ++j)
        if (axes[j].kind == Axis::Kind::kCategory) out.push_back(point[j]);
    for (std::size_t j = 0; j < axes.size(); ++j) {
        if (axes[j].kind != Axis::Kind::kStepped) continue;
        CellTable* table = estimator.kernel(j).cells->table(point[j]);
        tables.push_back(table);
        out.push_back(table->low);
        out.push_back(table->high);
    }
}

}  // namespace

void ParzenEstimator::log_density(std::span<const double> points, std::span<double> out) const {
    const ScoreView view = view_of(*this);
    std::vector<double> laid_out;
    laid_out.reserve(out.size() * view.stride());
    std::vector<CellTable*> tables;
    std::vector<LogSum> sums(out.size());
    for (std::size_t c = 0; c < out.size(); ++c) {
        const double* point = points.data() + c * axes_.size();
        lay_out(*this, point, laid_out, tables);
        // The prior is the last component; it is counted first, as a first bound.
        sums[c].max = log_prior({point, axes_.size()});
        sums[c].lanes[0] = 1;
    }
    add_kernels(view, laid_out, tables, sums);
    const double log_weight_sum = std::log(weight_sum_);
    for (std::size_t c = 0; c < out.size(); ++c) {
        double total = 0;
        for (const double lane : sums[c].lanes) total += lane;
        out[c] = sums[c].max + std::log(total) - log_weight_sum;
    }
}

}  // namespace tune::tuner
