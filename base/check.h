#pragma once
// TUNE_CHECK: for programmer errors only; always on. Anything a user or a machine can cause is a
// Result instead.

#include <string_view>

namespace tune {

/// Prints the message with its place and aborts.
[[noreturn]] void check_failed(std::string_view condition, std::string_view message,
                               const char* file = __builtin_FILE(), int line = __builtin_LINE(),
                               const char* function = __builtin_FUNCTION());

}  // namespace tune

#define TUNE_CHECK(condition, message)                               \
    do {                                                             \
        if (!(condition)) ::tune::check_failed(#condition, message); \
    } while (false)
