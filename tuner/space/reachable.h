#pragma once
// Parameters that no point can have, because their conditions contradict each other.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tuner/space/space.h"

namespace tune::tuner {

struct NeverActive {
    std::size_t parameter = 0;  // index
    std::string message;
};

/// The first parameter that can never be active: its conditions, with those of the parameters that
/// they name, ask of one parameter what no value of it is. Exact, but for rules (`forbid`), which
/// it leaves alone, and for what lies beyond a million conditions looked at. REQUIRES: conditions
/// that are possible one by one; no cycle.
[[nodiscard]] std::optional<NeverActive> never_active(
    const std::vector<Parameter>& parameters, const std::vector<std::size_t>& parents_first);

/// The same of a space that has no lines. Errors: kInvalidParameterValue naming the parameter.
[[nodiscard]] Result<void> check_reachable(const Space& space);

}  // namespace tune::tuner
