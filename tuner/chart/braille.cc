#include "tuner/chart/braille.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace tune::chart {

void Braille::dot(long x, long y, int colour) {
    if (x < 0 || y < 0 || x >= width() || y >= height()) return;
    // By column and row of the dot within its character (Unicode 1.1, block U+2800).
    static constexpr std::array<std::array<std::uint8_t, 4>, 2> kBits = {
        {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}};
    const std::size_t at =
        static_cast<std::size_t>(y / 4) * columns_ + static_cast<std::size_t>(x / 2);
    dots_[at] |= kBits[static_cast<std::size_t>(x % 2)][static_cast<std::size_t>(y % 4)];
    colours_[at] = colour;
}

void Braille::line(long x0, long y0, long x1, long y1, int colour) {
    // Ends may lie far outside; no line needs more steps than this to look the same inside.
    constexpr long kStepsMax = 100'000;
    const long steps = std::min(std::max(std::labs(x1 - x0), std::labs(y1 - y0)), kStepsMax);
    for (long i = 0; i <= steps; ++i) {
        const double part = steps == 0 ? 0 : static_cast<double>(i) / static_cast<double>(steps);
        dot(x0 + static_cast<long>(part * static_cast<double>(x1 - x0) + (x1 < x0 ? -0.5 : 0.5)),
            y0 + static_cast<long>(part * static_cast<double>(y1 - y0) + (y1 < y0 ? -0.5 : 0.5)),
            colour);
    }
}

std::string Braille::row(std::size_t index, bool colours) const {
    std::string out;
    for (std::size_t i = index * columns_; i < (index + 1) * columns_; ++i) {
        if (dots_[i] == 0) {
            out += ' ';
            continue;
        }
        // U+2800 + bits in UTF-8.
        const std::string character = {'\xE2', static_cast<char>(0xA0 | (dots_[i] >> 6)),
                                       static_cast<char>(0x80 | (dots_[i] & 0x3F))};
        out += coloured(character, colours_[i], colours);
    }
    return out;
}

std::string coloured(const std::string& text, int colour, bool colours) {
    if (!colours || colour < 0 || text.empty()) return text;
    return "\033[38;5;" + std::to_string(colour) + "m" + text + "\033[0m";
}

}  // namespace tune::chart
