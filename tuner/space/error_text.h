#pragma once
// The words errors are made of. Private to tuner/space.

#include <string>
#include <string_view>
#include <vector>

namespace tune::tuner {

/// 'text', cut to 60 characters, control characters replaced by '?'.
[[nodiscard]] std::string in_quotes(std::string_view text);

/// The text cut to 60 characters.
[[nodiscard]] std::string shortened(std::string_view text);

/// "a, b, c"; after 24 words "and 30 more".
[[nodiscard]] std::string listed(const std::vector<std::string>& words);

/// "; did you mean 'x'?" for the known word nearest to `word` (Damerau-Levenshtein distance at most
/// a third of its length), or nothing. O(words * length^2).
[[nodiscard]] std::string did_you_mean(std::string_view word,
                                       const std::vector<std::string>& known);

/// "; did you mean 'x'? Known: x, y, z", or "; known: x, y, z" when nothing is near.
[[nodiscard]] std::string known_words(std::string_view word, const std::vector<std::string>& known);

}  // namespace tune::tuner
