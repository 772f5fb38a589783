#pragma once
// What people read: tables, numbers, colours where the output is a terminal.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace tune::cli {

enum class Tone { kPlain, kBold, kDim, kGood, kWarn, kBad };

/// Whether `fd` is a terminal that may be redrawn (TERM=dumb is not).
[[nodiscard]] bool is_terminal(int fd);

struct TerminalSize {
    std::size_t columns = 100;
    std::size_t rows = 40;
    friend bool operator==(const TerminalSize&, const TerminalSize&) = default;
};

/// Of the terminal that `fd` is; 100 x 40 when it is none or does not say.
[[nodiscard]] TerminalSize terminal_size(int fd);

/// Columns of the terminal on stderr.
[[nodiscard]] std::size_t terminal_columns();

/// `text`, which may hold escape codes, cut to a screen: no line wraps, and with the line of the
/// cursor below it nothing scrolls, so that it can be redrawn in place.
[[nodiscard]] std::string fitted(const std::string& text, const TerminalSize& size);

/// `text` with the escape codes of `tone`; unchanged when stdout is no terminal or NO_COLOR is set.
[[nodiscard]] std::string styled(std::string_view text, Tone tone);

/// A bar of 24 cells, of which the part `share` (0 to 1) is filled.
[[nodiscard]] std::string progress_bar(double share);

/// Cells on the screen: wide characters (of East Asia, emoji) count twice, escape codes not at all.
[[nodiscard]] std::size_t width_of(std::string_view text);

/// At most `columns` cells; what is cut is marked by "…". `text` holds no escape codes.
[[nodiscard]] std::string clipped(std::string_view text, std::size_t columns);

/// Control characters of others' text (names, reasons; also C1 and bidirectional marks) as '?', so
/// that they cannot steer a terminal.
[[nodiscard]] std::string printable(std::string_view text);

/// 4 significant digits; "-" for null, "NaN" and infinities by name.
[[nodiscard]] std::string number_cell(const Json& value);

/// "0.8 s", "12 s", "3:07", "1:02:03".
[[nodiscard]] std::string span_text(std::int64_t span_ms);

/// A row of bars, one a value, scaled between the smallest and the largest finite one; at most
/// `columns` wide (the last values).
[[nodiscard]] std::string sparkline(const std::vector<double>& values, std::size_t columns);

/// Rows under a header; the columns are as wide as their widest cell.
class Table {
public:
    enum class Align { kLeft, kRight };
    void column(std::string_view title, Align align = Align::kLeft);
    void row(std::vector<std::string> cells);
    [[nodiscard]] bool empty() const { return rows_.empty(); }
    [[nodiscard]] std::string text() const;

private:
    struct Column {
        std::string title;
        Align align;
        std::size_t width;
    };
    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace tune::cli
