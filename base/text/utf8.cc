#include "base/text/utf8.h"

#include <clocale>
#include <cstdint>
#include <cwctype>

namespace tune::tracker {
namespace {

bool is_continuation(char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0u) == 0x80u;
}

std::size_t length_from_lead(unsigned char lead) {
    if (lead < 0x80) return 1;
    if (lead >= 0xc2 && lead < 0xe0) return 2;
    if (lead >= 0xe0 && lead < 0xf0) return 3;
    if (lead >= 0xf0 && lead < 0xf5) return 4;
    return 0;
}

/// Takes one code point off the front. Negative for bytes that are not UTF-8.
std::int32_t take_code_point(std::string_view& text) {
    const auto lead = static_cast<unsigned char>(text.front());
    const std::size_t length = length_from_lead(lead);
    if (length == 0 || length > text.size()) return -1;
    std::int32_t code = length == 1 ? lead : lead & (0x7f >> length);
    for (std::size_t i = 1; i < length; ++i) {
        if (!is_continuation(text[i])) return -1;
        code = (code << 6) | (static_cast<unsigned char>(text[i]) & 0x3f);
    }
    text.remove_prefix(length);
    return code;
}

/// Letters and digits by glibc's Unicode tables, which every C.UTF-8 has built in.
bool is_alphanumeric(std::int32_t code) {
    static const locale_t unicode = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    if (unicode == nullptr) return true;  // a C library without it: do not refuse foreign scripts
    return ::iswalnum_l(static_cast<wint_t>(code), unicode) != 0;
}

bool is_ascii_word(std::int32_t code) {
    return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') ||
           (code >= '0' && code <= '9') || code == '_';
}

}  // namespace

std::size_t count_characters(std::string_view text) {
    std::size_t count = 0;
    for (const char byte : text) count += is_continuation(byte) ? 0 : 1;
    return count;
}

bool cut_to_characters(std::string& text, std::size_t characters_max) {
    if (text.size() <= characters_max) return false;
    std::size_t count = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (is_continuation(text[i])) continue;
        if (count++ == characters_max) {
            text.resize(i);
            return true;
        }
    }
    return false;
}

bool is_of_word_characters(std::string_view text, std::string_view also) {
    while (!text.empty()) {
        const char lead = text.front();
        const std::int32_t code = take_code_point(text);
        if (code < 0) return false;
        if (code < 0x80) {
            if (!is_ascii_word(code) && also.find(lead) == std::string_view::npos) return false;
        } else if (!is_alphanumeric(code)) {
            return false;
        }
    }
    return true;
}

}  // namespace tune::tracker
