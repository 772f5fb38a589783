// PED-ANOVA (Watanabe, Bansal, Hutter 2023) over counts. Each parameter's axis is cut into at most
// 50 cells; the importance is the Pearson divergence between the density of the best trials and
// that of all trials. The best are the first ceil(target * n) by loss, kept as an ordered set
// beside the rest: a new trial moves at most two others across the border, so adding costs O(log n)
// instead of a sort. Ties with the worst of the best are added when the importances are asked for.

#include "tuner/importance/ped_anova.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tuner/importance/scott_density.h"

namespace tune::tuner {
namespace {

constexpr std::size_t kCellsMax = 50;
constexpr std::uint16_t kNoCell = UINT16_MAX;
/// Keeps the ratio of two densities finite.
constexpr double kDensityMin = 1e-12;
/// Values of a parameter below which nothing can be said about it.
constexpr std::size_t kActiveMin = 2;

/// Cells of an integer on a logarithmic scale: one a doubling of the width.
std::size_t log_cells(double low, double high) {
    return static_cast<std::size_t>(std::ceil(std::log(high - low + 1) / std::log(2.0))) + 1;
}

}  // namespace

PedAnova::PedAnova(Space space, double target) : space_(std::move(space)), target_(target) {
    for (const Parameter& parameter : space_.parameters()) axes_.push_back(axis_of(parameter));
}

PedAnova::Axis PedAnova::axis_of(const Parameter& parameter) {
    Axis axis;
    if (parameter.is_single()) return axis;
    axis.is_ordered = parameter.kind != Kind::kChoice;
    axis.log = parameter.log;
    axis.low = parameter.log ? std::log(parameter.low) : parameter.low;
    const double high = parameter.log ? std::log(parameter.high) : parameter.high;
    axis.cells = kCellsMax;
    if (!axis.is_ordered) {
        axis.cells = static_cast<std::size_t>(parameter.count());
    } else if (parameter.log && parameter.kind == Kind::kInt) {
        axis.cells = std::min(log_cells(parameter.low, parameter.high), kCellsMax);
    } else if (!parameter.log && parameter.step > 0) {
        const double values = std::round((parameter.high - parameter.low) / parameter.step) + 1;
        if (values < static_cast<double>(kCellsMax)) axis.cells = static_cast<std::size_t>(values);
    }
    axis.width = (high - axis.low) / static_cast<double>(axis.cells - 1);
    axis.all.assign(axis.cells, 0);
    axis.best.assign(axis.cells, 0);
    return axis;
}

PedAnova::Cell PedAnova::cell_of(const Axis& axis, double internal) {
    if (axis.cells == 0 || !is_active(internal)) return kNoCell;
    if (!axis.is_ordered) return static_cast<Cell>(internal);
    // A value in the middle between two cells goes to the lower one.
    const double at = ((axis.log ? std::log(internal) : internal) - axis.low) / axis.width;
    return static_cast<Cell>(
        std::clamp(std::ceil(at - 0.5), 0.0, static_cast<double>(axis.cells - 1)));
}

void PedAnova::add(const Point& point, double loss) {
    if (!std::isfinite(loss)) return;
    const auto row = static_cast<std::uint32_t>(losses_.size());
    losses_.push_back(loss);
    for (std::size_t i = 0; i < axes_.size(); ++i) {
        const Cell cell = cell_of(axes_[i], point[i]);
        cells_.push_back(cell);
        if (cell != kNoCell) ++axes_[i].all[cell];
    }
    const auto wanted =
        static_cast<std::size_t>(std::ceil(target_ * static_cast<double>(losses_.size())));
    // The newcomer joins the best, the worst of them leaves, and when the best are now one more,
    // the best of the rest joins: each trial stands where a sort would put it.
    move(rest_, best_, {loss, row});
    if (best_.size() > 1) move(best_, rest_, *std::prev(best_.end()));
    if (best_.size() < wanted && !rest_.empty()) move(rest_, best_, *rest_.begin());
}

void PedAnova::move(std::set<Ranked>& from, std::set<Ranked>& to, Ranked trial) {
    from.erase(trial);
    to.insert(trial);
    count_best(trial.second, &to == &best_);
}

void PedAnova::count_best(std::uint32_t row, bool is_added) {
    for (std::size_t i = 0; i < axes_.size(); ++i) {
        const Cell cell = cells_[row * axes_.size() + i];
        if (cell == kNoCell) continue;
        if (is_added)
            ++axes_[i].best[cell];
        else
            --axes_[i].best[cell];
    }
}

double PedAnova::divergence_of(std::size_t index, std::size_t best_size,
                               const std::vector<std::uint32_t>& best) const {
    const Axis& axis = axes_[index];
    const std::uint64_t all_active =
        std::accumulate(axis.all.begin(), axis.all.end(), std::uint64_t{0});
    const std::uint64_t best_active = std::accumulate(best.begin(), best.end(), std::uint64_t{0});
    if (all_active < kActiveMin || best_active == 0) return 0;
    const std::vector<double> top = scott_density(best, axis.is_ordered);
    const std::vector<double> local = scott_density(axis.all, axis.is_ordered);
    double divergence = 0;
    for (std::size_t cell = 0; cell < axis.cells; ++cell) {
        const double here = local[cell] + kDensityMin;
        const double ratio = (top[cell] + kDensityMin) / here - 1;
        divergence += here * ratio * ratio;
    }
    const double in_best = static_cast<double>(best_active) / static_cast<double>(best_size);
    const double in_all = static_cast<double>(all_active) / static_cast<double>(losses_.size());
    return divergence * in_best * in_best / in_all;
}

std::vector<double> PedAnova::importances() const {
    std::vector<double> found(axes_.size(), 0);
    if (losses_.size() < 2) return found;
    // Trials as good as the worst of the best belong to the best too.
    std::vector<std::uint32_t> ties;
    const double cutoff = std::prev(best_.end())->first;
    for (auto at = rest_.begin(); at != rest_.end() && at->first == cutoff; ++at)
        ties.push_back(at->second);
    const std::size_t best_size = best_.size() + ties.size();
    const double share = static_cast<double>(best_size) / static_cast<double>(losses_.size());
    for (std::size_t i = 0; i < axes_.size(); ++i) {
        if (axes_[i].cells == 0) continue;
        std::vector<std::uint32_t> best = axes_[i].best;
        for (const std::uint32_t row : ties)
            if (const Cell cell = cells_[row * axes_.size() + i]; cell != kNoCell) ++best[cell];
        found[i] = share * share * divergence_of(i, best_size, best);
    }
    return found;
}

std::vector<double> shares_of(std::vector<double> importances) {
    const double sum = std::accumulate(importances.begin(), importances.end(), 0.0);
    for (double& value : importances) value = sum > 0 ? value / sum : 0;
    return importances;
}

}  // namespace tune::tuner
