#include "base/text/hex.h"

namespace tune {

std::string hex_encode(std::span<const unsigned char> bytes) {
    std::string text;
    text.reserve(2 * bytes.size());
    for (const unsigned char byte : bytes) append_hex(text, static_cast<char>(byte));
    return text;
}

bool hex_decode(std::string_view text, std::span<unsigned char> bytes) {
    if (text.size() != 2 * bytes.size()) return false;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const std::size_t high = kHexDigits.find(text[2 * i]);
        const std::size_t low = kHexDigits.find(text[2 * i + 1]);
        if (high == std::string_view::npos || low == std::string_view::npos) return false;
        bytes[i] = static_cast<unsigned char>(high << 4 | low);
    }
    return true;
}

}  // namespace tune
