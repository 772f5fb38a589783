#pragma once
// Reading a study for the verbs that look at all of it.

#include <string>
#include <string_view>

#include "tuner/cli/backend.h"
#include "tuner/plots/study_data.h"

namespace tune::cli {

/// The study that is meant: the one that is named, or the only one that there is. Errors:
/// kInvalidParameterValue with the names to choose from.
[[nodiscard]] Result<std::string> named_or_only_study(Backend& backend, const std::string& name);

/// All trials, page by page. `fields`: empty, or "intermediate" for their learning curves too.
[[nodiscard]] Result<Json> read_trials(Backend& backend, const std::string& study,
                                       std::string_view fields = {});

/// Study and trials, ready to plot.
[[nodiscard]] Result<tuner::StudyData> read_study_data(Backend& backend, const std::string& study,
                                                       bool with_curves = false);

/// Writes a whole file. Errors: kPermissionDenied with the reason of the system.
[[nodiscard]] Result<void> write_whole_file(const std::string& path, const std::string& bytes);

}  // namespace tune::cli
