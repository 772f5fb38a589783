// Plots along time: history, empirical distribution (edf), learning curves, timeline. A plot is a
// Figure of layers (tuner/chart), so the same data becomes SVG, PNG, text and JSON.
//
// Infeasible trials are drawn apart and never improve the best-so-far line. At most 500 learning
// curves are drawn: more only cover each other.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/text/counted.h"
#include "tuner/chart/scale.h"
#include "tuner/plots/plot_parts.h"

namespace tune::tuner {
namespace {

using chart::Figure;
using chart::Layer;
using chart::Mark;
using chart::Panel;
using chart::Role;

/// Learning curves of one picture; more would only cover each other.
constexpr std::size_t kCurvesMax = 500;

void add_point(Layer& layer, const PlotRequest& request, const PlotTrial& trial, double value) {
    layer.x.push_back(static_cast<double>(trial.number));
    layer.y.push_back(value);
    layer.labels.push_back(trial_label(request, trial));
}

Panel history_panel(const PlotRequest& request, std::size_t metric, bool with_best) {
    Layer points{.name = "complete", .role = Role::kComplete, .opacity = 0.75};
    Layer infeasible{.name = "beyond its bounds", .role = Role::kCancelled, .hollow = true};
    Layer best{.mark = Mark::kSteps, .name = "best so far", .role = Role::kBest, .size = 1.4};
    double best_loss = INFINITY;
    std::vector<double> values;
    for (const PlotTrial* trial : request.study.complete(metric)) {
        const double value = trial->values[metric];
        values.push_back(value);
        add_point(trial->violation > 0 ? infeasible : points, request, *trial, value);
        const double loss = request.study.loss(*trial, metric);
        if (trial->violation > 0 || loss >= best_loss) continue;
        best_loss = loss;
        best.x.push_back(static_cast<double>(trial->number));
        best.y.push_back(value);
    }
    Panel panel{.y = value_axis(request.study.metrics[metric], values)};
    const double last =
        request.study.trials.empty() ? 1 : static_cast<double>(request.study.trials.size() - 1);
    panel.x = chart::axis_for("trial", {0, last});
    panel.x.is_whole = true;
    if (!best.x.empty()) {
        best.x.push_back(last);
        best.y.push_back(best.y.back());
    }
    if (!points.x.empty()) panel.layers.push_back(std::move(points));
    if (!infeasible.x.empty()) panel.layers.push_back(std::move(infeasible));
    if (with_best && !best.x.empty()) panel.layers.push_back(std::move(best));
    return panel;
}

struct StateStyle {
    const char* state;
    Role role;
};
constexpr StateStyle kStates[] = {{"complete", Role::kComplete},
                                  {"pruned", Role::kPruned},
                                  {"failed", Role::kFailed},
                                  {"cancelled", Role::kCancelled},
                                  {"running", Role::kRunning}};

const PlotTrial* best_of(const PlotRequest& request) {
    const PlotTrial* best = nullptr;
    for (const PlotTrial* trial : request.study.complete(request.metric))
        if (trial->violation <= 0 &&
            (best == nullptr || request.study.loss(*trial, request.metric) <
                                    request.study.loss(*best, request.metric)))
            best = trial;
    return best;
}

void add_curve(Layer& layer, const PlotTrial& trial) {
    if (!layer.x.empty()) {
        layer.x.push_back(kNaN);
        layer.y.push_back(kNaN);
    }
    for (const auto& [step, value] : trial.curve) {
        layer.x.push_back(step);
        layer.y.push_back(value);
    }
}

}  // namespace

chart::Figure history_plot(const PlotRequest& request) {
    const StudyData& study = request.study;
    const std::size_t count = study.metrics.size();
    Figure figure{.title = study.name + ": history",
                  .note = count_note(request, study.complete(request.metric)),
                  .columns = std::min<std::size_t>(count, 2)};
    for (std::size_t i = 0; i < count; ++i)
        figure.panels.push_back(history_panel(request, i, count == 1));
    return figure;
}

chart::Figure edf_plot(const PlotRequest& request) {
    const PlotMetric& metric = request.study.metrics[request.metric];
    std::vector<double> values;
    for (const PlotTrial* trial : request.study.complete(request.metric))
        values.push_back(trial->values[request.metric]);
    std::sort(values.begin(), values.end());
    if (metric.is_max) std::reverse(values.begin(), values.end());
    Layer line{.mark = Mark::kSteps, .role = Role::kComplete, .size = 1.4};
    for (std::size_t i = 0; i < values.size(); ++i) {
        line.x.push_back(values[i]);
        line.y.push_back(static_cast<double>(i) / static_cast<double>(values.size()));
    }
    if (!values.empty()) {
        line.x.push_back(values.back());
        line.y.push_back(1);
    }
    Panel panel{.x = value_axis(metric, values),
                .y = chart::axis_for("share of trials at least as good", {0, 1})};
    panel.layers.push_back(std::move(line));
    Figure figure{.title = request.study.name + ": distribution of " + metric.name,
                  .note = count_note(request, request.study.complete(request.metric))};
    figure.panels.push_back(std::move(panel));
    return figure;
}

chart::Figure intermediate_plot(const PlotRequest& request) {
    std::vector<const PlotTrial*> shown;
    for (const PlotTrial& trial : request.study.trials)
        if (!trial.curve.empty()) shown.push_back(&trial);
    const std::size_t found = shown.size();
    const PlotTrial* best = best_of(request);
    if (found > kCurvesMax) {
        std::vector<const PlotTrial*> some;
        for (std::size_t i = 0; i < kCurvesMax; ++i) some.push_back(shown[i * found / kCurvesMax]);
        shown = std::move(some);
    }
    Panel panel;
    std::vector<double> steps;
    std::vector<double> values;
    for (const StateStyle& style : kStates) {
        Layer layer{.mark = Mark::kLines, .name = style.state, .role = style.role, .opacity = 0.45};
        for (const PlotTrial* trial : shown)
            if (trial->state == style.state && trial != best) add_curve(layer, *trial);
        if (!layer.x.empty()) panel.layers.push_back(std::move(layer));
    }
    if (best != nullptr && !best->curve.empty()) {
        Layer layer{.mark = Mark::kLines,
                    .name = "best (#" + std::to_string(best->number) + ")",
                    .role = Role::kBest,
                    .size = 1.8};
        add_curve(layer, *best);
        panel.layers.push_back(std::move(layer));
    }
    for (const Layer& layer : panel.layers) {
        steps.insert(steps.end(), layer.x.begin(), layer.x.end());
        values.insert(values.end(), layer.y.begin(), layer.y.end());
    }
    panel.x = chart::axis_for("step", steps);
    panel.x.is_whole = true;
    panel.y = value_axis(request.study.metrics[0], values);
    Figure figure{.title = request.study.name + ": learning curves"};
    figure.note = found == 0 ? "no trial has reported an intermediate value"
                             : std::to_string(shown.size()) + " of " +
                                   counted(static_cast<std::int64_t>(found), "trial") +
                                   " that reported intermediate values";
    figure.panels.push_back(std::move(panel));
    return figure;
}

chart::Figure timeline_plot(const PlotRequest& request) {
    double first = INFINITY;
    double last = 0;
    for (const PlotTrial& trial : request.study.trials) {
        if (trial.start_s > 0) first = std::min(first, trial.start_s);
        last = std::max({last, trial.start_s, trial.end_s});
    }
    Panel panel;
    double busy = 0;
    for (const StateStyle& style : kStates) {
        Layer layer{.mark = Mark::kSpans, .name = style.state, .role = style.role};
        for (const PlotTrial& trial : request.study.trials) {
            if (trial.start_s <= 0 || trial.state != style.state) continue;
            const double end = trial.end_s > 0 ? trial.end_s : last;
            layer.x.push_back(trial.start_s - first);
            layer.x2.push_back(end - first);
            layer.y.push_back(static_cast<double>(trial.number));
            const std::string where = trial.worker.empty() ? "" : " on " + trial.worker;
            std::string label = trial_label(request, trial);
            label += (label.ends_with(':') ? " " : ", ") + trial.state;
            layer.labels.push_back(label + ", " + chart::duration_label(end - trial.start_s) +
                                   where);
            busy += end - trial.start_s;
        }
        if (!layer.x.empty()) panel.layers.push_back(std::move(layer));
    }
    const bool any = first <= last;
    panel.x = chart::axis_for("time since the first trial", {0, any ? last - first : 1},
                              chart::ScaleKind::kDuration);
    panel.x.low = 0;
    const auto count = static_cast<double>(std::max<std::size_t>(request.study.trials.size(), 1));
    panel.y = {.title = "trial", .low = -0.5, .high = count - 0.5, .is_whole = true};
    Figure figure{.title = request.study.name + ": timeline",
                  .note = any ? chart::duration_label(busy) + " of trials in " +
                                    chart::duration_label(last - first)
                              : "no trial has started"};
    figure.panels.push_back(std::move(panel));
    return figure;
}

}  // namespace tune::tuner
