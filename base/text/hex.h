#pragma once
// Bytes as hexadecimal digits.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tune {

inline constexpr std::string_view kHexDigits = "0123456789abcdef";
inline constexpr std::string_view kUpperHexDigits = "0123456789ABCDEF";

/// The value of one digit of either case; -1 for any other character.
[[nodiscard]] constexpr int hex_value(char digit) {
    if (digit >= '0' && digit <= '9') return digit - '0';
    if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
    return -1;
}

/// Appends the two digits of `byte`, taken from `digits`.
inline void append_hex(std::string& out, char byte, std::string_view digits = kHexDigits) {
    const auto value = static_cast<unsigned char>(byte);
    out.push_back(digits[value >> 4]);
    out.push_back(digits[value & 15]);
}

/// Two lower-case digits per byte.
[[nodiscard]] std::string hex_encode(std::span<const unsigned char> bytes);

/// Reads what hex_encode() wrote into `bytes`. False for anything else: another length, upper case,
/// other characters; `bytes` is then undefined.
[[nodiscard]] bool hex_decode(std::string_view text, std::span<unsigned char> bytes);

}  // namespace tune
