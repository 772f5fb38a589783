#pragma once
// Which way objectives go.

#include <utility>
#include <vector>

namespace tune::tuner {

enum class Goal { kMinimize, kMaximize };

/// What a study's values mean. One goal without constraints is what every sampler takes; which take
/// more says SamplerKind (tuner/sampler/sampler_kind.h).
struct Objectives {
    std::vector<Goal> goals;      // at least one; Observation::value is of the first
    bool is_constrained = false;  // Observation::violation says something

    // NOLINTNEXTLINE(google-explicit-constructor): one goal is the usual case.
    Objectives(Goal goal) : goals{goal} {}
    Objectives(std::vector<Goal> several, bool has_constraints)
        : goals(std::move(several)), is_constrained(has_constraints) {}
};

}  // namespace tune::tuner
