#include "base/text/number_text.h"

#include <charconv>
#include <cmath>

namespace tune {

std::string number_text(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    // The shortest digits come from to_chars; where the exponent begins is Python's.
    const double size = std::fabs(value);
    const bool is_plain = size == 0 || (size >= 1e-4 && size < 1e16);
    char buffer[32];
    const auto end =
        std::to_chars(buffer, buffer + sizeof buffer, value,
                      is_plain ? std::chars_format::fixed : std::chars_format::scientific)
            .ptr;
    std::string text(buffer, end);
    if (is_plain && text.find('.') == std::string::npos) text += ".0";
    return text;
}

std::string shortest_text(double value) {
    std::string text;
    append_shortest(text, value);
    return text;
}

void append_shortest(std::string& out, double value) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    out.append(digits, end);
}

}  // namespace tune
