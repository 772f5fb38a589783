#include <charconv>
#include <cmath>
#include <string>

#include "tuner/space/space.h"

namespace tune::tuner {

std::string number_text(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    if (value == 0) return std::signbit(value) ? "-0.0" : "0.0";
    // The shortest digits come from to_chars; only their layout is Python's.
    char buffer[32];
    const auto end =
        std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
    const std::string_view scientific(buffer, static_cast<std::size_t>(end - buffer));
    const std::size_t e = scientific.find('e');
    const bool negative = scientific[0] == '-';
    std::string digits;
    for (const char c : scientific.substr(0, e))
        if (c >= '0' && c <= '9') digits += c;
    int exponent = 0;
    const char* exponent_begin = scientific.data() + e + 1;
    if (*exponent_begin == '+') ++exponent_begin;
    (void)std::from_chars(exponent_begin, end, exponent);

    std::string text = negative ? "-" : "";
    const int count = static_cast<int>(digits.size());
    if (exponent < -4 || exponent >= 16) {
        text += digits[0];
        if (count > 1) text.append(".").append(digits, 1);
        text += exponent < 0 ? "e-" : "e+";
        const int magnitude = std::abs(exponent);
        if (magnitude < 10) text += '0';
        return text + std::to_string(magnitude);
    }
    if (exponent < 0) {
        return text.append("0.").append(static_cast<std::size_t>(-exponent - 1), '0') + digits;
    }
    const auto whole = static_cast<std::size_t>(exponent) + 1;
    if (count <= exponent + 1) {
        return text.append(digits).append(whole - digits.size(), '0') + ".0";
    }
    return text.append(digits, 0, whole).append(".").append(digits, whole);
}

}  // namespace tune::tuner
