#include "tracker/transfer/text.h"

#include <charconv>
#include <cstdint>

namespace tune::tracker {
namespace {

constexpr std::size_t kShownBytesMax = 200;

/// Bytes of the well-formed character at the front of `text`; 0 if there is none.
std::size_t character_bytes(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80) return 1;
    const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
    for (std::size_t i = 1; i < size; ++i)
        if ((byte(i) & 0xc0) != 0x80) return 0;
    const bool is_overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
    const bool is_surrogate = first == 0xed && byte(1) >= 0xa0;
    const bool is_beyond = first == 0xf4 && byte(1) >= 0x90;
    return is_overlong || is_surrogate || is_beyond ? 0 : size;
}

}  // namespace

std::string clean_text(std::string_view text, std::int64_t& changed_count) {
    std::size_t good = 0;
    while (good < text.size()) {
        const std::size_t size = character_bytes(text.substr(good));
        if (size == 0) break;
        good += size;
    }
    std::string out(text.substr(0, good));
    if (good == text.size()) return out;
    ++changed_count;
    while (good < text.size()) {
        const std::size_t size = character_bytes(text.substr(good));
        if (size == 0)
            out += "\xef\xbf\xbd";
        else
            out += text.substr(good, size);
        good += size == 0 ? 1 : size;
    }
    return out;
}

std::string shown(std::string_view text) {
    std::string out(text.substr(0, kShownBytesMax));
    for (char& c : out)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    return text.size() > kShownBytesMax ? out + "..." : out;
}

template <class Number>
bool parse_number(std::string_view text, Number& number) {
    if (text.starts_with('+')) text.remove_prefix(1);
    const char* end = text.data() + text.size();
    const auto [rest, failed] = std::from_chars(text.data(), end, number);
    return failed == std::errc() && rest == end && !text.empty();
}

template bool parse_number<std::int64_t>(std::string_view, std::int64_t&);
template bool parse_number<double>(std::string_view, double&);

}  // namespace tune::tracker
