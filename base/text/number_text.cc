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

template <class Number>
std::optional<Number> number_from_text(std::string_view text) {
    Number number{};
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc{} || stop != end) return std::nullopt;
    return number;
}

template std::optional<int> number_from_text<int>(std::string_view);
template std::optional<long> number_from_text<long>(std::string_view);
template std::optional<unsigned> number_from_text<unsigned>(std::string_view);
template std::optional<unsigned long> number_from_text<unsigned long>(std::string_view);
template std::optional<double> number_from_text<double>(std::string_view);

}  // namespace tune
