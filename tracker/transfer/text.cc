#include "tracker/transfer/text.h"

#include <cstdint>
#include <optional>

#include "base/text/number_text.h"
#include "base/text/utf8.h"

namespace tune::tracker {
namespace {

constexpr std::size_t kShownBytesMax = 200;

}  // namespace

std::string clean_text(std::string_view text, std::int64_t& changed_count) {
    std::size_t good = 0;
    while (good < text.size()) {
        const std::size_t size = decode_utf8(text.substr(good)).bytes;
        if (size == 0) break;
        good += size;
    }
    std::string out(text.substr(0, good));
    if (good == text.size()) return out;
    ++changed_count;
    while (good < text.size()) {
        const std::size_t size = decode_utf8(text.substr(good)).bytes;
        if (size == 0)
            out += kReplacementCharacter;
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
    const std::optional<Number> found = number_from_text<Number>(text);
    if (found) number = *found;
    return found.has_value();
}

template bool parse_number<std::int64_t>(std::string_view, std::int64_t&);
template bool parse_number<double>(std::string_view, double&);

}  // namespace tune::tracker
