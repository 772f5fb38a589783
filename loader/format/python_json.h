#pragma once
// JSON as Python's json module writes and reads it.

#include <string>
#include <string_view>

#include "base/json.h"

namespace tune::loader {

/// json.dumps(value, sort_keys=True): ", " and ": ", everything but ASCII escaped as \uXXXX.
[[nodiscard]] std::string python_json(const Json& value);

/// Whether json.loads would take `text`: JSON, and also NaN, Infinity and -Infinity. Nesting beyond
/// `kJsonDepthMax` counts as damage.
[[nodiscard]] bool is_python_json(std::string_view text);

}  // namespace tune::loader
