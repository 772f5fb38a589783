#pragma once
// Spaces of other tuners as study.yaml: Optuna, Weights & Biases, NNI, Katib, Hyperopt.
//
// What has no counterpart is said in a comment of the result where the study still means the same
// (a dashboard's project), and is an error where it would not (a distribution we lack).

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tune::tuner {

enum class ForeignSystem { kOptuna, kWandb, kNni, kKatib, kHyperopt };

[[nodiscard]] std::optional<ForeignSystem> foreign_system(std::string_view name);

/// "optuna, wandb, nni, katib, hyperopt".
[[nodiscard]] std::string foreign_systems();

/// `text`: YAML or JSON (a JSON text is YAML). `system`: nothing to tell it from the text. Returns
/// a study.yaml that read_study reads. Errors: kInvalidParameterValue, "line 3, column 7: ...".
[[nodiscard]] Result<std::string> study_from_foreign(std::string_view text,
                                                     std::optional<ForeignSystem> system);

}  // namespace tune::tuner
