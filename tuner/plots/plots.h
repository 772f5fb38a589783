#pragma once
// The plots of a study: which trials, on which axes, in which colours. Pure.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/chart/figure.h"
#include "tuner/plots/study_data.h"

namespace tune::tuner {

enum class PlotKind {
    kHistory,
    kIntermediate,
    kParallel,
    kSlice,
    kContour,
    kImportance,
    kEdf,
    kRank,
    kTimeline,
    kPareto
};

/// All of them, by the words of the command line, with what they show.
struct PlotWord {
    const char* name;
    PlotKind kind;
    const char* summary;
};
[[nodiscard]] const std::vector<PlotWord>& plot_words();

struct PlotOptions {
    std::vector<std::string> params = {};  // empty: all, or the most important ones
    std::string metric = {};               // empty: the first objective
};

/// Errors: kInvalidParameterValue for parameters or metrics the study does not have, and where the
/// plot needs more of them than there are.
[[nodiscard]] Result<chart::Figure> make_plot(PlotKind kind, const StudyData& study,
                                              const PlotOptions& options = {});

/// Whether the plot shows nothing without a complete trial.
[[nodiscard]] bool needs_complete(PlotKind kind);

/// PED-ANOVA over the complete trials (importance/ped_anova.h): one value per parameter of the
/// space, 0 or more, larger is more important; not normalised.
[[nodiscard]] std::vector<double> ped_anova_of(const StudyData& study, std::size_t metric);

/// The parameters by that importance: indices of the space, the most important first; all
/// that have more than one value. By PED-ANOVA.
[[nodiscard]] std::vector<std::size_t> by_importance(const StudyData& study, std::size_t metric);

/// Whether no other complete trial is at least as good in every objective and better in one; in
/// order of `trials`. Only trials within the study's bounds are on the front.
[[nodiscard]] std::vector<bool> pareto_front(const StudyData& study,
                                             const std::vector<const PlotTrial*>& trials);

}  // namespace tune::tuner
