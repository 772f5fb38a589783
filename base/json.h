#pragma once
// JSON in headers is the forward declaration only (0.35 s a file instead of 2 s); include
// <nlohmann/json.hpp> in .cc.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tune {

using Json = nlohmann::json;

/// Parses UTF-8 JSON. Nesting deeper than `kJsonDepthMax` (base/limits.h) is refused before it can
/// exhaust the stack. Errors: kInvalidParameterValue with line and column of the first error.
[[nodiscard]] Result<Json> parse_json(std::string_view text);

/// As parse_json, but `//` and `/* */` comments are allowed (files written by people).
[[nodiscard]] Result<Json> parse_json_with_comments(std::string_view text);

/// Compact JSON text. Invalid UTF-8 in strings is replaced, never thrown on.
[[nodiscard]] std::string to_text(const Json& value);

/// A double as JSON text holds it: a finite number, or the string "NaN", "Infinity" or "-Infinity"
/// (protobuf's JSON, which is what MLflow speaks).
[[nodiscard]] Json json_number(double value);

}  // namespace tune
