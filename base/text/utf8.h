#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tune::tracker {

/// Characters (code points) of UTF-8 text; a stray byte counts as one.
[[nodiscard]] std::size_t count_characters(std::string_view text);

/// Cuts `text` to its first `characters_max` characters. True if it was longer.
bool cut_to_characters(std::string& text, std::size_t characters_max);

/// Python's `\w` for all of `text`, except that characters of `also` are allowed too: letters and
/// digits of any script, and the underscore. False for text that is not UTF-8.
[[nodiscard]] bool is_of_word_characters(std::string_view text, std::string_view also);

}  // namespace tune::tracker
