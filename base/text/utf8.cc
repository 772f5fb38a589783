#include "base/text/utf8.h"

#include <clocale>
#include <cwctype>

namespace tune {
namespace {

/// Letters and digits by glibc's Unicode tables, which every C.UTF-8 has built in.
bool is_alphanumeric(char32_t code) {
    static const locale_t unicode = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    if (unicode == nullptr) return true;  // a C library without it: do not refuse foreign scripts
    return ::iswalnum_l(static_cast<wint_t>(code), unicode) != 0;
}

bool is_ascii_word(char32_t code) {
    return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') ||
           (code >= '0' && code <= '9') || code == '_';
}

}  // namespace

CodePoint decode_utf8(std::string_view text) {
    const auto lead = static_cast<unsigned char>(text.front());
    if (lead < 0x80) return {lead, 1};
    if (lead < 0xc2 || lead > 0xf4) return {};
    const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (length > text.size()) return {};
    char32_t code = lead & (0x7fu >> length);
    for (std::size_t i = 1; i < length; ++i) {
        if (!is_utf8_continuation(text[i])) return {};
        code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3fu);
    }
    const char32_t smallest = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0x80;
    const bool is_surrogate = code >= 0xd800 && code < 0xe000;
    if (code < smallest || code > 0x10ffff || is_surrogate) return {};
    return {code, length};
}

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const CodePoint next = decode_utf8(text);
        if (next.bytes == 0) return false;
        text.remove_prefix(next.bytes);
    }
    return true;
}

std::size_t count_characters(std::string_view text) {
    std::size_t count = 0;
    for (const char byte : text) count += is_utf8_continuation(byte) ? 0 : 1;
    return count;
}

bool cut_to_characters(std::string& text, std::size_t characters_max) {
    if (text.size() <= characters_max) return false;
    std::size_t count = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (is_utf8_continuation(text[i])) continue;
        if (count++ == characters_max) {
            text.resize(i);
            return true;
        }
    }
    return false;
}

std::string_view cut_to_bytes(std::string_view text, std::size_t bytes_max) {
    if (text.size() <= bytes_max) return text;
    std::size_t end = bytes_max;
    while (end > 0 && is_utf8_continuation(text[end])) --end;
    return text.substr(0, end);
}

bool is_of_word_characters(std::string_view text, std::string_view also) {
    while (!text.empty()) {
        const char lead = text.front();
        const CodePoint next = decode_utf8(text);
        if (next.bytes == 0) return false;
        text.remove_prefix(next.bytes);
        if (next.bytes == 1) {
            if (!is_ascii_word(next.code) && also.find(lead) == std::string_view::npos)
                return false;
        } else if (!is_alphanumeric(next.code)) {
            return false;
        }
    }
    return true;
}

}  // namespace tune
