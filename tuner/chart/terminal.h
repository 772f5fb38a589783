#pragma once
// A figure as text: points and lines in braille (2 x 4 dots a character), bars and spans in blocks.

#include <cstddef>
#include <string>

#include "tuner/chart/figure.h"

namespace tune::chart {

struct TerminalSize {
    std::size_t columns = 80;  // at least 30 are used
    std::size_t rows = 18;     // of one panel's plot
    bool colours = false;      // 256 colours by escape codes
};

/// Lines end in "\n" and hold at most `columns` cells. All texts are clean.
[[nodiscard]] std::string to_terminal(const Figure& figure, TerminalSize size);

}  // namespace tune::chart
