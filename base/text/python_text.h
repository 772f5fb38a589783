#pragma once
// Values as Python prints them: MLflow's sentences contain repr() of what they complain about, and
// its client logs params as str() of what the program has.

#include <string>
#include <string_view>

#include "base/json.h"

namespace tune {

/// repr(str): single quotes unless the text has some and no double ones.
[[nodiscard]] std::string python_repr(std::string_view text);

/// str(json.loads(value)): "True", "None", "0.001", "1e-05", "adam", "[1, 'a']". O(size).
[[nodiscard]] std::string python_text(const Json& value);

}  // namespace tune
