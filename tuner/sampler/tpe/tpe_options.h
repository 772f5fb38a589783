#pragma once
// What a study says of TPE, and TPE within other samplers.

#include <memory>

#include "tuner/sampler/sampler_kind.h"

namespace tune::tuner {

/// Whose rules TPE follows (docs/study_file_options.md says what they are).
enum class TpePreset { kTune, kOptuna5, kOptuna4, kHyperopt, kWatanabe };

/// How constraints enter TPE: infeasible trials rank after all others in one model (kJoint,
/// Optuna's rule), or each constraint has a model of its own (kEach, c-TPE).
enum class ConstraintRule { kJoint, kEach };

struct TpeOptions {
    int startup = 10;     // trials before the model is used
    int candidates = 24;  // points drawn a suggestion
    TpePreset preset = TpePreset::kTune;
    int window = 10'000;  // bad trials in the model, the latest; 0: all
    ConstraintRule constraints = ConstraintRule::kJoint;

    [[nodiscard]] bool operator==(const TpeOptions&) const = default;
};

/// "tpe" in a study.
[[nodiscard]] const SamplerKind& tpe_sampler();

/// TPE by the rules that `options` and the objectives call for.
[[nodiscard]] std::unique_ptr<Sampler> make_tpe(const TpeOptions& options,
                                                const SamplerContext& context);

/// TPE within another sampler keeps to Optuna's rules.
[[nodiscard]] inline TpeOptions tpe_within() {
    return {.preset = TpePreset::kOptuna5};
}

}  // namespace tune::tuner
