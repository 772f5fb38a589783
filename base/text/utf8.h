#pragma once
// UTF-8: decoding, validity, and cutting between characters (code points).

#include <cstddef>
#include <string>
#include <string_view>

namespace tune {

/// U+FFFD, which stands for bytes that are not UTF-8.
inline constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";

struct CodePoint {
    char32_t code = 0;
    std::size_t bytes = 0;  // 0: no well-formed character
};

/// The character that `text` begins with. Well-formed is what RFC 3629 allows: no overlong forms,
/// no surrogates, nothing above U+10FFFF. REQUIRES: `text` is not empty.
[[nodiscard]] CodePoint decode_utf8(std::string_view text);

/// Whether `byte` can only stand within a character.
[[nodiscard]] constexpr bool is_utf8_continuation(char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0u) == 0x80u;
}

/// Whether all of `text` is well-formed.
[[nodiscard]] bool is_utf8(std::string_view text);

/// Characters of UTF-8 text; a stray byte counts as one.
[[nodiscard]] std::size_t count_characters(std::string_view text);

/// Cuts `text` to its first `characters_max` characters. True if it was longer.
bool cut_to_characters(std::string& text, std::size_t characters_max);

/// The first `bytes_max` bytes of `text`, or fewer where a character would be cut in two.
[[nodiscard]] std::string_view cut_to_bytes(std::string_view text, std::size_t bytes_max);

/// Python's `\w` for all of `text`, except that characters of `also` are allowed too: letters and
/// digits of any script, and the underscore. False for text that is not UTF-8.
[[nodiscard]] bool is_of_word_characters(std::string_view text, std::string_view also);

}  // namespace tune
