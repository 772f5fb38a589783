// The table of plots, the checks that all share (parameters and metric exist), and the ranking of
// parameters by PED-ANOVA that decides which of many are shown.

#include "tuner/plots/plots.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/text/counted.h"
#include "tuner/chart/scale.h"
#include "tuner/importance/ped_anova.h"
#include "tuner/plots/plot_parts.h"
#include "tuner/space/error_text.h"

namespace tune::tuner {
namespace {

Result<PlotRequest> read_request(const StudyData& study, const PlotOptions& options) {
    PlotRequest request{.study = study};
    if (!options.metric.empty()) {
        const auto at =
            std::find_if(study.metrics.begin(), study.metrics.end(),
                         [&](const PlotMetric& metric) { return metric.name == options.metric; });
        if (at == study.metrics.end())
            return Error{Code::kInvalidParameterValue,
                         "study '" + study.name + "' has no objective '" + options.metric + "'"};
        request.metric = static_cast<std::size_t>(at - study.metrics.begin());
    }
    for (const std::string& name : options.params) {
        const auto index = study.space.find(name);
        if (!index) {
            std::string known;
            for (const Parameter& parameter : study.space.parameters())
                known += (known.empty() ? "" : ", ") + parameter.name;
            return Error{
                Code::kInvalidParameterValue,
                "study '" + study.name + "' has no parameter '" + name + "'; it has " + known};
        }
        request.params.push_back(*index);
    }
    return request;
}

}  // namespace

const std::vector<PlotWord>& plot_words() {
    static const std::vector<PlotWord> words = {
        {"history", PlotKind::kHistory, "values by trial, and the best so far"},
        {"curves", PlotKind::kIntermediate, "intermediate values of the trials"},
        {"intermediate", PlotKind::kIntermediate, "the same as curves"},
        {"parallel", PlotKind::kParallel, "parallel coordinates of the parameters"},
        {"slice", PlotKind::kSlice, "value against each parameter"},
        {"contour", PlotKind::kContour, "value over pairs of parameters, interpolated"},
        {"rank", PlotKind::kRank, "trials over pairs of parameters, coloured by rank"},
        {"importance", PlotKind::kImportance, "how much each parameter matters"},
        {"edf", PlotKind::kEdf, "share of the trials that are at least as good"},
        {"timeline", PlotKind::kTimeline, "when each trial ran"},
        {"pareto", PlotKind::kPareto, "trials of several objectives and the front"}};
    return words;
}

bool needs_complete(PlotKind kind) {
    return kind != PlotKind::kIntermediate && kind != PlotKind::kTimeline;
}

Result<chart::Figure> make_plot(PlotKind kind, const StudyData& study, const PlotOptions& options) {
    TUNE_TRY(request, read_request(study, options));
    switch (kind) {
        case PlotKind::kHistory: return history_plot(request);
        case PlotKind::kIntermediate: return intermediate_plot(request);
        case PlotKind::kParallel: return parallel_plot(request);
        case PlotKind::kSlice: return slice_plot(request);
        case PlotKind::kContour: return contour_plot(request);
        case PlotKind::kImportance: return importance_plot(request);
        case PlotKind::kEdf: return edf_plot(request);
        case PlotKind::kRank: return rank_plot(request);
        case PlotKind::kTimeline: return timeline_plot(request);
        case PlotKind::kPareto: return pareto_plot(request);
    }
    return Error{Code::kInternalError, "no such plot"};
}

std::vector<double> ped_anova_of(const StudyData& study, std::size_t metric) {
    PedAnova importance(study.space);
    for (const PlotTrial* trial : study.complete(metric))
        importance.add(trial->point, study.loss(*trial, metric));
    return importance.importances();
}

std::vector<std::size_t> by_importance(const StudyData& study, std::size_t metric) {
    const std::vector<double> values = ped_anova_of(study, metric);
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < study.space.size(); ++i)
        if (!study.space[i].is_single()) order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
    return order;
}

std::vector<std::size_t> params_to_show(const PlotRequest& request, std::size_t most) {
    if (!request.params.empty()) return request.params;
    std::vector<std::size_t> shown = by_importance(request.study, request.metric);
    if (shown.size() > most) shown.resize(most);
    std::sort(shown.begin(), shown.end());
    return shown;
}

std::string trial_label(const PlotRequest& request, const PlotTrial& trial) {
    std::string label = "#" + std::to_string(trial.number) + ":";
    for (std::size_t i = 0; i < request.study.metrics.size(); ++i)
        if (!std::isnan(trial.values[i]))
            label +=
                " " + request.study.metrics[i].name + " " + chart::short_number(trial.values[i]);
    return label;
}

chart::Axis value_axis(const PlotMetric& metric, const std::vector<double>& values) {
    double low = INFINITY;
    double high = -INFINITY;
    for (const double value : values) {
        if (!std::isfinite(value)) continue;
        low = std::min(low, value);
        high = std::max(high, value);
    }
    const bool is_log = low > 0 && high / low > 1000;
    return chart::axis_for(metric.name, values,
                           is_log ? chart::ScaleKind::kLog : chart::ScaleKind::kLinear);
}

chart::Axis param_axis(const Parameter& parameter) {
    if (parameter.kind == Kind::kChoice || parameter.kind == Kind::kOrdinal ||
        parameter.kind == Kind::kConst) {
        std::vector<std::string> names;
        for (std::size_t i = 0; i < parameter.choices.size(); ++i)
            names.push_back(parameter.text(static_cast<double>(i)));
        return chart::category_axis(parameter.name, std::move(names));
    }
    chart::Axis axis =
        chart::axis_for(parameter.name, {parameter.low, parameter.high},
                        parameter.log ? chart::ScaleKind::kLog : chart::ScaleKind::kLinear);
    axis.is_whole = parameter.kind == Kind::kInt;
    return axis;
}

std::vector<double> goodness(const PlotRequest& request,
                             const std::vector<const PlotTrial*>& trials) {
    std::vector<std::size_t> order(trials.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto loss = [&](std::size_t i) { return request.study.loss(*trials[i], request.metric); };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return loss(a) < loss(b); });
    std::vector<double> good(trials.size(), 1);
    for (std::size_t i = 1; i < order.size(); ++i)
        good[order[i]] = loss(order[i]) == loss(order[i - 1])
                             ? good[order[i - 1]]
                             : 1 - static_cast<double>(i) / static_cast<double>(order.size() - 1);
    return good;
}

chart::ColourBar goodness_bar(const PlotRequest& request) {
    return {.title = request.study.metrics[request.metric].name + " by rank",
            .low = "worst",
            .high = "best"};
}

std::string count_note(const PlotRequest& request, const std::vector<const PlotTrial*>& shown) {
    const auto complete = std::count_if(request.study.trials.begin(), request.study.trials.end(),
                                        [](const PlotTrial& trial) { return trial.is_complete(); });
    if (complete == 0)
        return "no trial has completed (" +
               counted(static_cast<std::int64_t>(request.study.trials.size()), "trial") + ")";
    if (shown.empty() && complete == 1) return "the complete trial has no finite value";
    if (shown.empty())
        return "none of the " + counted(complete, "complete trial") + " has a finite value";
    return std::to_string(shown.size()) + " of " +
           counted(static_cast<std::int64_t>(request.study.trials.size()), "trial") +
           (shown.size() == 1 ? " is" : " are") + " complete with a finite value";
}

}  // namespace tune::tuner
