#pragma once
// A raster of braille dots with a colour a character. Private to tuner/chart.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tune::chart {

class Braille {
public:
    Braille(std::size_t columns, std::size_t rows)
        : columns_(columns), rows_(rows), dots_(columns * rows, 0), colours_(columns * rows, -1) {}

    /// Dots; 0, 0 is the upper left one. Outside: ignored.
    [[nodiscard]] long width() const { return static_cast<long>(columns_ * 2); }
    [[nodiscard]] long height() const { return static_cast<long>(rows_ * 4); }
    void dot(long x, long y, int colour);
    /// A straight line with both ends; parts outside are ignored.
    void line(long x0, long y0, long x1, long y1, int colour);

    /// One row of characters, with escape codes if `colours`.
    [[nodiscard]] std::string row(std::size_t index, bool colours) const;

private:
    std::size_t columns_;
    std::size_t rows_;
    std::vector<std::uint8_t> dots_;  // a bit a dot, in the order of U+2800
    std::vector<int> colours_;        // of the last dot; -1: none
};

/// `text` in one of the terminal's 256 colours, or as it is.
[[nodiscard]] std::string coloured(const std::string& text, int colour, bool colours);

}  // namespace tune::chart
