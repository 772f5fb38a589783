#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tune::tracker {

/// `text` as UTF-8 (a NUL belongs to it): each byte that does not belong is replaced by U+FFFD,
/// since JSON could not carry it. Counts the texts that had to be changed in `changed_count`.
[[nodiscard]] std::string clean_text(std::string_view text, std::int64_t& changed_count);

/// A path or name for a sentence: control characters as '?', at most 200 bytes.
[[nodiscard]] std::string shown(std::string_view text);

/// The number that `text` is from its first to its last character; "nan", "inf" and "infinity" in
/// any case are numbers too where `Number` is double.
template <class Number>
[[nodiscard]] bool parse_number(std::string_view text, Number& number);

}  // namespace tune::tracker
