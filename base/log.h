#pragma once
// The one logger: lines on stderr, "12:34:56.789 warning: text". stdout belongs to what the user
// asked for.

#include <string_view>

namespace tune {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

/// Lines below `level` are dropped. Default kInfo. Thread-safe.
void set_log_level(LogLevel level);

/// Writes one line. Thread-safe; a line is never torn.
void log(LogLevel level, std::string_view text);

inline void log_debug(std::string_view text) {
    log(LogLevel::kDebug, text);
}
inline void log_info(std::string_view text) {
    log(LogLevel::kInfo, text);
}
inline void log_warning(std::string_view text) {
    log(LogLevel::kWarning, text);
}
inline void log_error(std::string_view text) {
    log(LogLevel::kError, text);
}

}  // namespace tune
