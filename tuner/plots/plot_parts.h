#pragma once
// What several plots use. Private to tuner/plots.

#include <functional>

#include "tuner/plots/plots.h"

namespace tune::tuner {

/// What a plot was asked for, checked.
struct PlotRequest {
    const StudyData& study;
    std::size_t metric = 0;
    std::vector<std::size_t> params = {};  // given ones; empty: none were
};

/// "#12: loss 0.31"
[[nodiscard]] std::string trial_label(const PlotRequest& request, const PlotTrial& trial);

/// The objective's axis; logarithmic when all values are above zero and spread over more than three
/// powers of ten.
[[nodiscard]] chart::Axis value_axis(const PlotMetric& metric, const std::vector<double>& values);

/// The parameter's whole domain.
[[nodiscard]] chart::Axis param_axis(const Parameter& parameter);

/// 1 for the best of these trials, 0 for the worst, by rank; equal values share one.
[[nodiscard]] std::vector<double> goodness(const PlotRequest& request,
                                           const std::vector<const PlotTrial*>& trials);

[[nodiscard]] chart::ColourBar goodness_bar(const PlotRequest& request);

/// "study: 30 of 32 trials complete"
[[nodiscard]] std::string count_note(const PlotRequest& request,
                                     const std::vector<const PlotTrial*>& shown);

/// The parameters to show: those asked for, else the `most` most important in order of the space.
[[nodiscard]] std::vector<std::size_t> params_to_show(const PlotRequest& request, std::size_t most);

/// A panel for each pair of the parameters asked for, else of the two most important ones. Errors:
/// kInvalidParameterValue with fewer than two, or with so many that nothing could be seen.
using PairPanel = std::function<chart::Panel(std::size_t a, std::size_t b)>;
[[nodiscard]] Result<chart::Figure> pair_plot(const PlotRequest& request, const char* what,
                                              const PairPanel& make);

// One file each or a few that belong together.
[[nodiscard]] chart::Figure history_plot(const PlotRequest& request);
[[nodiscard]] chart::Figure edf_plot(const PlotRequest& request);
[[nodiscard]] chart::Figure intermediate_plot(const PlotRequest& request);
[[nodiscard]] chart::Figure timeline_plot(const PlotRequest& request);
[[nodiscard]] chart::Figure parallel_plot(const PlotRequest& request);
[[nodiscard]] chart::Figure slice_plot(const PlotRequest& request);
[[nodiscard]] chart::Figure importance_plot(const PlotRequest& request);
[[nodiscard]] chart::Figure pareto_plot(const PlotRequest& request);
/// Errors: kInvalidParameterValue with fewer than two parameters.
[[nodiscard]] Result<chart::Figure> contour_plot(const PlotRequest& request);
[[nodiscard]] Result<chart::Figure> rank_plot(const PlotRequest& request);

}  // namespace tune::tuner
