#pragma once
// Values as a Python program prints them, which is how MLflow's client logs params: the tuner's
// params then read as those that the trial's own program logs.

#include <string>

#include "base/json.h"

namespace tune::tuner {

/// str(json.loads(value)): "True", "None", "0.001", "1e-05", "adam", "[1, 'a']". O(size).
[[nodiscard]] std::string python_text(const Json& value);

}  // namespace tune::tuner
