#pragma once
// What the sampler `auto` does with a space, and why.
//
// Threads: pure functions.

#include <cstddef>
#include <cstdint>
#include <string>

#include "tuner/sampler/gp/gp_options.h"

namespace tune::tuner {

/// Of the Gaussian process; the samplers after it have none.
struct AutoOptions {
    Warp warp = Warp::kAuto;
    std::optional<double> noise = {};

    [[nodiscard]] bool operator==(const AutoOptions&) const = default;
};

/// A Gaussian process while it is worth its cost, CMA-ES or TPE afterwards.
struct AutoChoice {
    std::size_t gp_trials =
        0;  // finished trials up to which the Gaussian process proposes; 0: never
    bool is_cmaes_last = false;  // CMA-ES follows, with every fifth trial by TPE; else TPE
    std::string reason;          // of the space: "4 parameters, 1 of them a category"
};

/// A function of the space and the objectives alone, so that a budget may be raised without
/// changing what was suggested. How many trials run at once and how noisy they are is seen as the
/// study goes: pending trials and noise are part of the Gaussian process. O(parameters).
[[nodiscard]] AutoChoice choose_sampler(const Space& space, const Objectives& objectives);

/// One sentence for people: "gp with every fifth trial by tpe for the first 300 trials (4
/// parameters, 1 of them a category; noise is learnt), then tpe; the budget of 100 ends before
/// that".
[[nodiscard]] std::string choice_text(const AutoOptions& options, const StudyOutlook& study);

/// "auto" in a study.
[[nodiscard]] const SamplerKind& auto_sampler();

}  // namespace tune::tuner
