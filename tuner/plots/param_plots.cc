// Plots over the parameters: parallel coordinates, slice, rank, importance, and pairs for contours.
//
// Trials are drawn worst first, so that the best lie on top. Pictures are bounded, whatever the
// study: 10 columns and 2,000 lines (the best and every n-th) of parallel coordinates, 12 slices, 4
// parameters in pairs; which parameters, their importance decides.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tuner/chart/scale.h"
#include "tuner/importance/ped_anova.h"
#include "tuner/plots/plot_parts.h"

namespace tune::tuner {
namespace {

using chart::Figure;
using chart::Layer;
using chart::Mark;
using chart::Panel;
using chart::Role;

constexpr std::size_t kColumnsMax = 10;  // of parallel coordinates, besides the objective
constexpr std::size_t kLinesMax = 2000;  // of parallel coordinates: the best, and every n-th
constexpr std::size_t kSlicesMax = 12;
constexpr std::size_t kPairParamsMax = 4;  // pairs of them: 6 panels

/// Worst first, so that the best are drawn over them.
std::vector<std::size_t> worst_first(const std::vector<double>& good) {
    std::vector<std::size_t> order(good.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return good[a] < good[b]; });
    return order;
}

std::vector<double> values_of(const PlotRequest& request,
                              const std::vector<const PlotTrial*>& trials) {
    std::vector<double> values;
    for (const PlotTrial* trial : trials) values.push_back(trial->values[request.metric]);
    return values;
}

/// One point of a pair plot.
void add_pair(Layer& layer, const PlotRequest& request, const PlotTrial& trial, std::size_t a,
              std::size_t b) {
    layer.x.push_back(trial.point[a]);
    layer.y.push_back(trial.point[b]);
    layer.labels.push_back(trial_label(request, trial));
}

Panel rank_panel(const PlotRequest& request, std::size_t a, std::size_t b) {
    const auto trials = request.study.complete(request.metric);
    const std::vector<double> good = goodness(request, trials);
    Layer points{.size = 1.3};
    for (const std::size_t i : worst_first(good)) {
        add_pair(points, request, *trials[i], a, b);
        points.shade.push_back(good[i]);
    }
    return {.x = param_axis(request.study.space[a]),
            .y = param_axis(request.study.space[b]),
            .layers = {std::move(points)}};
}

/// Lines of the best trials and of every n-th other one.
std::vector<std::size_t> lines_to_show(const std::vector<double>& good) {
    std::vector<std::size_t> order = worst_first(good);
    if (order.size() <= kLinesMax) return order;
    std::vector<std::size_t> some;
    const std::size_t best = kLinesMax / 4;
    const std::size_t others = order.size() - best;
    for (std::size_t i = 0; i < kLinesMax - best; ++i)
        some.push_back(order[i * others / (kLinesMax - best)]);
    some.insert(some.end(), order.end() - static_cast<std::ptrdiff_t>(best), order.end());
    return some;
}

}  // namespace

chart::Figure parallel_plot(const PlotRequest& request) {
    const auto trials = request.study.complete(request.metric);
    const std::vector<double> good = goodness(request, trials);
    const std::vector<std::size_t> params = params_to_show(request, kColumnsMax);
    Panel panel;
    panel.columns.push_back(
        value_axis(request.study.metrics[request.metric], values_of(request, trials)));
    for (const std::size_t index : params)
        panel.columns.push_back(param_axis(request.study.space[index]));
    std::vector<std::string> names;
    for (const chart::Axis& axis : panel.columns) names.push_back(axis.title);
    panel.x = chart::category_axis("", std::move(names));
    panel.x.low = -0.12;
    panel.x.high = static_cast<double>(panel.columns.size()) - 0.45;
    const std::vector<std::size_t> shown = lines_to_show(good);
    Layer lines{.mark = Mark::kLines, .opacity = shown.size() > 200 ? 0.4 : 0.7};
    lines.size = shown.size() > 200 ? 0.7 : 1;
    for (const std::size_t i : shown) {
        if (!lines.x.empty()) {
            lines.x.push_back(kNaN);
            lines.y.push_back(kNaN);
        }
        for (std::size_t c = 0; c < panel.columns.size(); ++c) {
            const double value =
                c == 0 ? trials[i]->values[request.metric] : trials[i]->point[params[c - 1]];
            lines.x.push_back(static_cast<double>(c));
            lines.y.push_back(chart::unit_of(panel.columns[c], value));
        }
        lines.shade.push_back(good[i]);
    }
    panel.layers.push_back(std::move(lines));
    Figure figure{.title = request.study.name + ": parallel coordinates",
                  .note = count_note(request, trials),
                  .bar = goodness_bar(request)};
    if (shown.size() < trials.size()) figure.note += "; only the best are drawn";
    figure.panels.push_back(std::move(panel));
    return figure;
}

chart::Figure slice_plot(const PlotRequest& request) {
    const auto trials = request.study.complete(request.metric);
    const std::vector<std::size_t> params = params_to_show(request, kSlicesMax);
    Figure figure{.title = request.study.name + ": slices",
                  .note = count_note(request, trials),
                  .columns = std::clamp<std::size_t>(params.size(), 1, 3),
                  .bar = {.title = "trial", .low = "first", .high = "last"}};
    const chart::Axis values =
        value_axis(request.study.metrics[request.metric], values_of(request, trials));
    const double last = static_cast<double>(std::max<std::size_t>(request.study.trials.size(), 2));
    for (std::size_t i = 0; i < params.size(); ++i) {
        Layer points{.opacity = 0.85};
        for (const PlotTrial* trial : trials) {
            points.x.push_back(trial->point[params[i]]);
            points.y.push_back(trial->values[request.metric]);
            points.shade.push_back(static_cast<double>(trial->number) / (last - 1));
            points.labels.push_back(trial_label(request, *trial));
        }
        Panel panel{.x = param_axis(request.study.space[params[i]]),
                    .y = values,
                    .layers = {std::move(points)}};
        if (i % figure.columns != 0) panel.y.title.clear();
        figure.panels.push_back(std::move(panel));
    }
    return figure;
}

chart::Figure importance_plot(const PlotRequest& request) {
    const StudyData& study = request.study;
    const std::vector<double> shares = shares_of(ped_anova_of(study, request.metric));
    Layer bars{.mark = Mark::kBars, .role = Role::kSeries0};
    Panel panel;
    std::vector<std::string> names;
    double largest = 0;
    for (const std::size_t index : by_importance(study, request.metric)) {
        names.push_back(study.space[index].name);
        bars.x.push_back(shares[index]);
        largest = std::max(largest, shares[index]);
        char percent[16];
        std::snprintf(percent, sizeof percent, "%.1f %%", 100 * shares[index]);
        bars.labels.emplace_back(percent);
    }
    // The first bar stands at the top.
    for (std::size_t i = 0; i < names.size(); ++i)
        bars.y.push_back(static_cast<double>(names.size() - 1 - i));
    std::reverse(names.begin(), names.end());
    panel.y = chart::category_axis("", std::move(names));
    panel.x = {.title = "share of the importance for " + study.metrics[request.metric].name,
               .low = 0,
               .high = largest > 0 ? std::min(largest * 1.15, 1.15) : 1};
    panel.layers.push_back(std::move(bars));
    Figure figure{.title = study.name + ": importance of parameters",
                  .note = "PED-ANOVA: what distinguishes the best tenth; " +
                          count_note(request, study.complete(request.metric))};
    figure.panels.push_back(std::move(panel));
    return figure;
}

Result<Figure> pair_plot(const PlotRequest& request, const char* what, const PairPanel& make) {
    std::vector<std::size_t> params = request.params;
    if (params.empty()) {
        params = by_importance(request.study, request.metric);
        if (params.size() > 2) params.resize(2);
    }
    if (params.size() < 2)
        return Error{Code::kInvalidParameterValue, std::string("a plot '") + what +
                                                       "' needs two parameters that vary; study '" +
                                                       request.study.name + "' has fewer"};
    if (params.size() > kPairParamsMax)
        return Error{Code::kInvalidParameterValue,
                     std::string("a plot '") + what + "' shows at most " +
                         std::to_string(kPairParamsMax) + " parameters"};
    Figure figure{.title = request.study.name + ": " + what,
                  .note = count_note(request, request.study.complete(request.metric)),
                  .columns = params.size() == 2   ? 1U
                             : params.size() == 3 ? 3U
                                                  : 2U};
    for (std::size_t i = 0; i < params.size(); ++i)
        for (std::size_t j = i + 1; j < params.size(); ++j)
            figure.panels.push_back(make(params[i], params[j]));
    return figure;
}

Result<Figure> rank_plot(const PlotRequest& request) {
    TUNE_TRY(figure, pair_plot(request, "rank", [&](std::size_t a, std::size_t b) {
                 return rank_panel(request, a, b);
             }));
    figure.bar = goodness_bar(request);
    return figure;
}

}  // namespace tune::tuner
