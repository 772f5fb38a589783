#pragma once

#include <arrow/array.h>

#include <cstdint>

#include "base/json.h"

namespace tune::loader {

/// One value of any type as JSON: structs and maps with text keys as objects, other maps as lists
/// of [key, value], bytes as base64, decimals as text, dates and times as their stored integers.
/// NaN and infinities as text.
[[nodiscard]] Json json_value(const arrow::Array& array, std::int64_t row);

}  // namespace tune::loader
