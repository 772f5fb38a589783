#pragma once
// Amounts of memory as people write them.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tune::tuner {

inline constexpr std::int64_t kBytesMax = std::int64_t{1} << 50;

/// "8GiB", "8G", "512M", "1.5T" (powers of 1024), "80GB" (powers of 1000), or a bare number of
/// bytes. Errors: kInvalidParameterValue.
[[nodiscard]] Result<std::int64_t> parse_bytes(std::string_view text);

/// "1536MiB": the largest unit in which it is a whole number; parse_bytes reads it back.
[[nodiscard]] std::string bytes_text(std::int64_t bytes);

/// "1.5 GiB": for people, three digits at most.
[[nodiscard]] std::string rounded_bytes_text(std::int64_t bytes);

}  // namespace tune::tuner
