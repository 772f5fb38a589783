// Names from users and from the network, made safe and measured.
//
// clean() decodes UTF-8 strictly (no overlong forms, no surrogates, nothing beyond U+10FFFF) and
// replaces each byte that is not UTF-8 and each control character by U+FFFD. Terminal sequences and
// bidirectional marks cannot reach a screen that way, nor can bytes that XML forbids reach an SVG.
// Everything else here may take clean text for granted and cuts it between characters only.
//
// Widths are estimates: in cells by ranges of East Asian and emoji characters, in ems by a few
// classes of letters of a sans-serif font.

#include "tuner/chart/text.h"

#include "base/text/utf8.h"

namespace tune::chart {
namespace {

constexpr std::string_view kEllipsis = "\xE2\x80\xA6";

bool is_control(char32_t code) {
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x200E || code == 0x200F ||
           (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) ||
           code == 0xFEFF || (code & 0xFFFE) == 0xFFFE;
}

bool is_wide(char32_t code) {
    return (code >= 0x1100 && code <= 0x115F) || (code >= 0x2E80 && code <= 0xA4CF) ||
           (code >= 0xAC00 && code <= 0xD7A3) || (code >= 0xF900 && code <= 0xFAFF) ||
           (code >= 0xFE30 && code <= 0xFE6F) || (code >= 0xFF00 && code <= 0xFF60) ||
           (code >= 0xFFE0 && code <= 0xFFE6) || (code >= 0x1F300 && code <= 0x1FAFF) ||
           (code >= 0x20000 && code <= 0x3FFFD);
}

double em_of(char32_t code) {
    if (code > 0x7F) return is_wide(code) ? 1.0 : 0.62;
    const char c = static_cast<char>(code);
    if (std::string_view("iljtfrI.,:;|!'()[] ").find(c) != std::string_view::npos) return 0.36;
    if (std::string_view("mwMW@%").find(c) != std::string_view::npos) return 0.92;
    return c >= 'A' && c <= 'Z' ? 0.7 : 0.6;
}

}  // namespace

std::string clean(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
        const CodePoint found = decode_utf8(text.substr(i));
        if (found.bytes == 0 || is_control(found.code))
            out += kReplacementCharacter;
        else
            out += text.substr(i, found.bytes);
        i += found.bytes == 0 ? 1 : found.bytes;
    }
    return out;
}

std::size_t cells_of(std::string_view text) {
    std::size_t cells = 0;
    for (std::size_t i = 0; i < text.size();) {
        const CodePoint found = decode_utf8(text.substr(i));
        cells += is_wide(found.code) ? 2 : 1;
        i += found.bytes == 0 ? 1 : found.bytes;
    }
    return cells;
}

std::size_t cells_at(std::string_view text, std::size_t at) {
    if (is_utf8_continuation(text[at])) return 0;
    return is_wide(decode_utf8(text.substr(at)).code) ? 2 : 1;
}

double ems_of(std::string_view text) {
    double ems = 0;
    for (std::size_t i = 0; i < text.size();) {
        const CodePoint found = decode_utf8(text.substr(i));
        ems += em_of(found.code);
        i += found.bytes == 0 ? 1 : found.bytes;
    }
    return ems;
}

std::string clip_cells(std::string_view text, std::size_t cells) {
    if (cells_of(text) <= cells) return std::string(text);
    if (cells == 0) return {};
    std::size_t used = 0;
    std::size_t i = 0;
    while (i < text.size()) {
        const CodePoint found = decode_utf8(text.substr(i));
        used += is_wide(found.code) ? 2 : 1;
        if (used >= cells) break;
        i += found.bytes == 0 ? 1 : found.bytes;
    }
    return std::string(text.substr(0, i)).append(kEllipsis);
}

std::string clip_ems(std::string_view text, double ems) {
    if (ems_of(text) <= ems) return std::string(text);
    double used = 0.9;  // of the ellipsis
    std::size_t i = 0;
    while (i < text.size()) {
        const CodePoint found = decode_utf8(text.substr(i));
        used += em_of(found.code);
        if (used > ems) break;
        i += found.bytes == 0 ? 1 : found.bytes;
    }
    return std::string(text.substr(0, i)).append(kEllipsis);
}

std::string clip_middle_ems(std::string_view text, double ems) {
    if (ems_of(text) <= ems) return std::string(text);
    const std::string begin = clip_ems(text, (ems + 0.9) / 2);
    double used = ems_of(begin);
    std::size_t from = text.size();
    while (from > 0) {
        std::size_t at = from - 1;
        while (at > 0 && is_utf8_continuation(text[at])) --at;
        used += em_of(decode_utf8(text.substr(at)).code);
        if (used > ems) break;
        from = at;
    }
    return begin + std::string(text.substr(from));
}

}  // namespace tune::chart
