// The front is found after a lexicographic sort by losses: nothing that stands later can dominate
// what stands before, so each trial is compared with the front found so far only. One panel per
// pair of objectives; with two the front is drawn as a staircase, which bounds what the trials
// reached.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/text/counted.h"
#include "tuner/plots/plot_parts.h"

namespace tune::tuner {
namespace {

using chart::Figure;
using chart::Layer;
using chart::Mark;
using chart::Panel;
using chart::Role;

std::vector<const PlotTrial*> complete_in_all(const StudyData& study) {
    std::vector<const PlotTrial*> found;
    for (const PlotTrial& trial : study.trials)
        if (trial.is_complete() && std::all_of(trial.values.begin(), trial.values.end(),
                                               [](double value) { return std::isfinite(value); }))
            found.push_back(&trial);
    return found;
}

Panel pareto_panel(const PlotRequest& request, std::size_t a, std::size_t b,
                   const std::vector<const PlotTrial*>& trials, const std::vector<bool>& front) {
    const StudyData& study = request.study;
    Layer others{.name = "complete", .role = Role::kComplete, .opacity = 0.45};
    Layer infeasible{.name = "beyond its bounds", .role = Role::kCancelled, .hollow = true};
    Layer best{.name = "front", .role = Role::kBest, .size = 1.4};
    Layer line{.mark = Mark::kSteps, .role = Role::kBest, .size = 0.8, .opacity = 0.7};
    std::vector<std::vector<double>> axes(2);
    std::vector<std::pair<double, double>> corners;
    for (std::size_t i = 0; i < trials.size(); ++i) {
        const double x = trials[i]->values[a];
        const double y = trials[i]->values[b];
        Layer& layer = front[i] ? best : trials[i]->violation > 0 ? infeasible : others;
        layer.x.push_back(x);
        layer.y.push_back(y);
        layer.labels.push_back(trial_label(request, *trials[i]));
        axes[0].push_back(x);
        axes[1].push_back(y);
        if (front[i]) corners.emplace_back(x, y);
    }
    Panel panel{.x = value_axis(study.metrics[a], axes[0]),
                .y = value_axis(study.metrics[b], axes[1])};
    // With two objectives the front is a staircase; with more its shadow would cross itself.
    if (study.metrics.size() == 2) {
        std::sort(corners.begin(), corners.end());
        // Walked from its best x on, so that the line bounds what was reached.
        if (study.metrics[a].is_max) std::reverse(corners.begin(), corners.end());
        for (const auto& [x, y] : corners) {
            line.x.push_back(x);
            line.y.push_back(y);
        }
        panel.layers.push_back(std::move(line));
    }
    for (Layer* layer : {&others, &infeasible, &best})
        if (!layer->x.empty()) panel.layers.push_back(std::move(*layer));
    return panel;
}

}  // namespace

std::vector<bool> pareto_front(const StudyData& study,
                               const std::vector<const PlotTrial*>& trials) {
    const std::size_t metrics = study.metrics.size();
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < trials.size(); ++i)
        if (trials[i]->violation <= 0) order.push_back(i);
    const auto losses = [&](std::size_t i) {
        std::vector<double> all(metrics);
        for (std::size_t m = 0; m < metrics; ++m) all[m] = study.loss(*trials[i], m);
        return all;
    };
    // In this order nothing dominates what stands before it: each need only look at the front so
    // far.
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return losses(a) < losses(b); });
    std::vector<bool> front(trials.size(), false);
    std::vector<std::vector<double>> kept;
    for (const std::size_t i : order) {
        const std::vector<double> mine = losses(i);
        const bool is_dominated = std::any_of(kept.begin(), kept.end(), [&](const auto& other) {
            bool is_better = false;
            for (std::size_t m = 0; m < metrics; ++m) {
                if (other[m] > mine[m]) return false;
                is_better = is_better || other[m] < mine[m];
            }
            return is_better;
        });
        if (is_dominated) continue;
        front[i] = true;
        kept.push_back(mine);
    }
    return front;
}

chart::Figure pareto_plot(const PlotRequest& request) {
    const StudyData& study = request.study;
    const auto trials = complete_in_all(study);
    Figure figure{.title = study.name + ": Pareto front"};
    const std::size_t metrics = study.metrics.size();
    if (metrics < 2) {
        figure = history_plot(request);
        figure.note = "one objective: its front is the best trial; " + figure.note;
        return figure;
    }
    const std::vector<bool> front = pareto_front(study, trials);
    const auto on_front = std::count(front.begin(), front.end(), true);
    figure.note = counted(on_front, "trial is", "trials are") + " on the front; " +
                  count_note(request, trials);
    constexpr std::size_t kObjectivesShown = 4;  // pairs of them: 6 panels
    const std::size_t shown = std::min(metrics, kObjectivesShown);
    figure.columns = shown == 2 ? 1 : shown == 3 ? 3 : 2;
    for (std::size_t a = 0; a < shown; ++a)
        for (std::size_t b = a + 1; b < shown; ++b)
            figure.panels.push_back(pareto_panel(request, a, b, trials, front));
    return figure;
}

}  // namespace tune::tuner
