#pragma once
// Dates and times as text, as filters, partitions and versions of tables name them.

#include <cstdint>
#include <optional>
#include <string_view>

namespace tune::loader {

/// Days since 1970-01-01 of "2026-01-31" (a month or day may have one digit); nothing for other
/// text.
[[nodiscard]] std::optional<std::int64_t> parse_date(std::string_view text);

/// Nanoseconds since 1970 of "2026-01-31", "2026-01-31 12:00", "2026-01-31T12:00:00.123456Z" or
/// with
/// "+01:00"; UTC where no zone is stated. Nothing for other text, or a time beyond 1677..2262.
[[nodiscard]] std::optional<std::int64_t> parse_time_ns(std::string_view text);

}  // namespace tune::loader
