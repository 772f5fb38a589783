#pragma once

#include <string>
#include <string_view>

namespace tune {

/// A to Z as a to z; every other byte stays, whatever the locale.
[[nodiscard]] std::string lower_ascii(std::string_view text);

/// Equal but for the case of A to Z.
[[nodiscard]] bool equals_ignoring_case(std::string_view a, std::string_view b);

/// A view of `text` without the bytes of `blanks` at its two ends.
[[nodiscard]] std::string_view trimmed(std::string_view text, std::string_view blanks = " \t\r\n");

}  // namespace tune
