// The objective over pairs of parameters: filled bands between round values, on a grid that is
// interpolated over the trials.

#include <algorithm>
#include <cmath>

#include "tuner/chart/scale.h"
#include "tuner/plots/level_grid.h"
#include "tuner/plots/plot_parts.h"

namespace tune::tuner {
namespace {

using chart::Axis;
using chart::Figure;
using chart::Layer;
using chart::Mark;
using chart::Panel;
using chart::Role;
using chart::ScaleKind;

constexpr std::size_t kSide = 100;  // nodes along each axis, as Optuna's
constexpr double kRoom = 0.05;      // beyond the outermost trials, of their range
constexpr std::size_t kLevelsWanted = 10;
constexpr std::size_t kFenceTrialsMin = 8;

/// How values become heights: the better, the higher.
struct Heights {
    bool is_log = false;
    bool is_max = false;
    double worst = 0;  // worse values count as this one
    bool is_cut = false;
    /// From the worst on: a round value each, with its text.
    std::vector<chart::Tick> levels = {};

    [[nodiscard]] double of(double value) const {
        const double kept = is_max ? std::max(value, worst) : std::min(value, worst);
        const double scaled = is_log ? std::log10(kept) : kept;
        return is_max ? scaled : -scaled;
    }
};

/// One diverged trial must not flatten the rest: what lies further from the quarters than four
/// times their distance, on the bad side, is cut.
Heights heights_of(const PlotMetric& metric, std::vector<double> values) {
    Heights heights{.is_max = metric.is_max};
    if (values.empty()) return heights;
    std::sort(values.begin(), values.end());
    if (metric.is_max) std::reverse(values.begin(), values.end());  // best first
    const auto at = [&](double share) {
        return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
    };
    heights.worst = values.back();
    if (values.size() >= kFenceTrialsMin && at(0.75) != at(0.25)) {
        const double fence = at(0.75) + 4 * (at(0.75) - at(0.25));
        if (metric.is_max ? heights.worst < fence : heights.worst > fence) {
            heights.worst = fence;
            heights.is_cut = true;
        }
    }
    const double low = std::min(values.front(), heights.worst);
    const double high = std::max(values.front(), heights.worst);
    Axis axis = value_axis(metric, {low, high});
    heights.is_log = axis.kind == ScaleKind::kLog;
    axis.low = low;
    axis.high = high;
    if (low < high) heights.levels = chart::ticks_of(axis, kLevelsWanted);
    std::erase_if(heights.levels,
                  [&](const chart::Tick& tick) { return tick.value <= low || tick.value >= high; });
    if (!metric.is_max) std::reverse(heights.levels.begin(), heights.levels.end());
    return heights;
}

/// Around the values that trials have, which may be a small part of the domain.
Axis seen_axis(const Parameter& parameter, std::size_t index,
               const std::vector<const PlotTrial*>& trials) {
    Axis axis = param_axis(parameter);
    if (axis.kind == ScaleKind::kCategory) {
        const double last = static_cast<double>(axis.categories.size()) - 1;
        axis.low = -kRoom * std::max(last, 1.0);
        axis.high = last + kRoom * std::max(last, 1.0);
        return axis;
    }
    double low = INFINITY;
    double high = -INFINITY;
    for (const PlotTrial* trial : trials) {
        if (!std::isfinite(trial->point[index])) continue;
        low = std::min(low, trial->point[index]);
        high = std::max(high, trial->point[index]);
    }
    if (!(low < high)) return axis;
    if (axis.kind == ScaleKind::kLog) {
        const double room = std::pow(high / low, kRoom);
        axis.low = low / room;
        axis.high = high * room;
    } else {
        axis.low = low - kRoom * (high - low);
        axis.high = high + kRoom * (high - low);
    }
    return axis;
}

double value_at(const Axis& axis, double node) {
    const double unit = node / (kSide - 1);
    if (axis.kind == ScaleKind::kLog) return axis.low * std::pow(axis.high / axis.low, unit);
    return axis.low + (axis.high - axis.low) * unit;
}

std::string band_text(const PlotMetric& metric, const chart::Tick& level) {
    return metric.name + (metric.is_max ? " at least " : " at most ") + level.label;
}

/// The bands from the worst to the best, each over those before it.
std::vector<Layer> bands_of(const PlotMetric& metric, const Heights& heights, const LevelGrid& grid,
                            const Panel& panel) {
    std::vector<Layer> bands;
    const auto count = static_cast<double>(heights.levels.size());
    const auto add = [&](const std::vector<std::vector<GridSpot>>& loops, std::string label) {
        const double shade = count > 0 ? static_cast<double>(bands.size()) / count : 0.5;
        Layer band{.mark = Mark::kAreas, .shade = {shade}, .labels = {std::move(label)}};
        for (const std::vector<GridSpot>& loop : loops) {
            if (!band.x.empty()) {
                band.x.push_back(NAN);
                band.y.push_back(NAN);
            }
            for (const GridSpot spot : loop) {
                band.x.push_back(value_at(panel.x, spot.x));
                band.y.push_back(value_at(panel.y, spot.y));
            }
        }
        bands.push_back(std::move(band));
    };
    constexpr double kLast = kSide - 1;
    add({{{0, 0}, {kLast, 0}, {kLast, kLast}, {0, kLast}}}, metric.name);
    for (const chart::Tick& level : heights.levels)
        add(outlines(grid, heights.of(level.value)), band_text(metric, level));
    return bands;
}

Panel contour_panel(const PlotRequest& request, const Heights& heights, std::size_t a,
                    std::size_t b) {
    const StudyData& study = request.study;
    std::vector<const PlotTrial*> trials;
    for (const PlotTrial* trial : study.complete(request.metric))
        if (std::isfinite(trial->point[a]) && std::isfinite(trial->point[b]))
            trials.push_back(trial);
    // Of several at one node the best counts: it comes last.
    std::stable_sort(
        trials.begin(), trials.end(), [&](const PlotTrial* one, const PlotTrial* other) {
            return study.loss(*one, request.metric) > study.loss(*other, request.metric);
        });
    Panel panel{.x = seen_axis(study.space[a], a, trials),
                .y = seen_axis(study.space[b], b, trials)};
    const auto node = [](const Axis& axis, double value) {
        const double at = chart::unit_of(axis, value) * (kSide - 1);
        return static_cast<std::size_t>(std::lround(std::clamp(at, 0.0, kSide - 1.0)));
    };
    std::vector<GridValue> known;
    Layer points{.name = "trials", .role = Role::kText, .size = 0.8, .rimmed = true};
    Layer infeasible = points;
    infeasible.name = "beyond its bounds";
    infeasible.role = Role::kCancelled;
    for (const PlotTrial* trial : trials) {
        known.push_back({node(panel.x, trial->point[a]), node(panel.y, trial->point[b]),
                         heights.of(trial->values[request.metric])});
        Layer& layer = trial->violation > 0 ? infeasible : points;
        layer.x.push_back(trial->point[a]);
        layer.y.push_back(trial->point[b]);
        layer.labels.push_back(trial_label(request, *trial));
    }
    if (!known.empty())
        panel.layers =
            bands_of(study.metrics[request.metric], heights, interpolated(kSide, known), panel);
    for (Layer* layer : {&infeasible, &points})
        if (!layer->x.empty()) panel.layers.push_back(std::move(*layer));
    return panel;
}

}  // namespace

Result<Figure> contour_plot(const PlotRequest& request) {
    const PlotMetric& metric = request.study.metrics[request.metric];
    std::vector<double> values;
    for (const PlotTrial* trial : request.study.complete(request.metric))
        values.push_back(trial->values[request.metric]);
    const Heights heights = heights_of(metric, values);
    TUNE_TRY(figure, pair_plot(request, "contour", [&](std::size_t a, std::size_t b) {
                 return contour_panel(request, heights, a, b);
             }));
    figure.bar = {.title = metric.name, .low = "worst", .high = "best"};
    for (const chart::Tick& level : heights.levels) figure.bar.edges.push_back(level.label);
    if (heights.is_cut)
        figure.note += "; what is worse than " + chart::short_number(heights.worst) +
                       " is drawn as " + chart::short_number(heights.worst);
    return figure;
}

}  // namespace tune::tuner
