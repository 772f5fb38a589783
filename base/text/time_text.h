#pragma once
// Times (milliseconds since 1970) as text, in no language but English.

#include <cstdint>
#include <string>

namespace tune {

/// The UTC time through `format` of strftime(3), which knows nothing below a second. At most 63
/// bytes.
[[nodiscard]] std::string utc_text(std::int64_t time_ms, const char* format);

/// The same in the time zone of this machine.
[[nodiscard]] std::string local_text(std::int64_t time_ms, const char* format);

/// "2026-01-31T12:34:56.789000+00:00", as Python's datetime.isoformat().
[[nodiscard]] std::string iso_time(std::int64_t time_ms);

/// "Sat, 31 Jan 2026 12:34:56 GMT" (RFC 9110, section 5.6.7), as headers of HTTP want it.
[[nodiscard]] std::string http_date(std::int64_t time_ms);

/// The milliseconds within the second as six digits, "789000": the microseconds of Python's times.
[[nodiscard]] std::string microseconds_text(std::int64_t time_ms);

}  // namespace tune
