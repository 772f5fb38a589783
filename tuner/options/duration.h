#pragma once
// Durations as people write them.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tune::tuner {

inline constexpr std::int64_t kDurationMax_ms = std::int64_t{3650} * 24 * 3600 * 1000;

/// "90", "90s", "1h30m", "250ms", "2d" in milliseconds; a bare number is seconds.
[[nodiscard]] Result<std::int64_t> parse_duration_ms(std::string_view text);

/// "1h30m"; the shortest text that parse_duration_ms reads back.
[[nodiscard]] std::string duration_text(std::int64_t duration_ms);

}  // namespace tune::tuner
