#pragma once
// Parameters as Optuna's distributions and back.

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "tuner/space/space.h"

namespace tune::tuner {

/// The text that Optuna 5 keeps of a distribution. What it cannot say is left out: the step of a
/// logarithmic parameter, the order of an ordinal, conditions; choices that are lists or maps
/// become their JSON texts.
[[nodiscard]] std::string distribution_json(const Parameter& parameter);

/// The parameter of a distribution of Optuna 2 to 5. Errors: kInvalidParameterValue saying what it
/// is that is none.
[[nodiscard]] Result<Parameter> parameter_of(const std::string& name, std::string_view json_text);

/// Takes the values of another distribution of the same parameter into this one: the bounds of
/// numbers grow. Errors: kInvalidParameterValue when they are of different kinds.
[[nodiscard]] Result<void> widen(Parameter& parameter, const Parameter& other);

}  // namespace tune::tuner
