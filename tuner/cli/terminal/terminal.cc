// Widths, colours and tables. What is laid out is measured in cells of the screen (the widths of
// tuner/chart), not in bytes, and foreign text passes printable() first, so that a name cannot move
// the cursor or shift a column.

#include "tuner/cli/terminal/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tuner/chart/text.h"

namespace tune::cli {
namespace {

std::string_view code_of(Tone tone) {
    switch (tone) {
        case Tone::kPlain: return "";
        case Tone::kBold: return "\033[1m";
        case Tone::kDim: return "\033[2m";
        case Tone::kGood: return "\033[32m";
        case Tone::kWarn: return "\033[33m";
        case Tone::kBad: return "\033[31m";
    }
    return "";
}

bool has_colours() {
    static const bool answer = is_terminal(STDOUT_FILENO) && std::getenv("NO_COLOR") == nullptr;
    return answer;
}

std::string padded(std::string_view cell, std::size_t width, Table::Align align) {
    const std::string blanks(width - std::min(width, width_of(cell)), ' ');
    return align == Table::Align::kLeft ? std::string(cell) + blanks : blanks + std::string(cell);
}

/// As clipped(), for text with escape codes.
std::string clipped_styled(const std::string& line, std::size_t columns) {
    std::string out;
    std::size_t width = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == '\033') {
            const std::size_t end = std::min(line.find('m', i), line.size() - 1);
            out += line.substr(i, end - i + 1);
            i = end;
            continue;
        }
        width += chart::cells_at(line, i);
        if (width >= columns) break;
        out += line[i];
    }
    return out + "\033[0m…";
}

}  // namespace

bool is_terminal(int fd) {
    const char* const terminal = std::getenv("TERM");
    return isatty(fd) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

TerminalSize terminal_size(int fd) {
    winsize found{};
    TerminalSize size;
    if (ioctl(fd, TIOCGWINSZ, &found) != 0) return size;
    if (found.ws_col > 0) size.columns = found.ws_col;
    if (found.ws_row > 0) size.rows = found.ws_row;
    return size;
}

std::size_t terminal_columns() {
    return terminal_size(STDERR_FILENO).columns;
}

std::string fitted(const std::string& text, const TerminalSize& size) {
    std::string out;
    std::size_t lines = 0;
    for (std::size_t at = 0; at < text.size() && ++lines < size.rows;) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::string line = text.substr(at, end - at);
        out += (width_of(line) <= size.columns ? line : clipped_styled(line, size.columns)) + "\n";
        at = end + 1;
    }
    return out;
}

std::string styled(std::string_view text, Tone tone) {
    if (tone == Tone::kPlain || !has_colours()) return std::string(text);
    return std::string(code_of(tone)) + std::string(text) + "\033[0m";
}

std::string progress_bar(double share) {
    constexpr std::size_t kColumns = 24;
    const auto filled = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * kColumns);
    std::string text;
    for (std::size_t i = 0; i < kColumns; ++i) text += i < filled ? "━" : "─";
    return text;
}

std::size_t width_of(std::string_view text) {
    std::size_t width = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\033') {
            while (i < text.size() && text[i] != 'm') ++i;
            continue;
        }
        width += chart::cells_at(text, i);
    }
    return width;
}

std::string clipped(std::string_view text, std::size_t columns) {
    return chart::clip_cells(text, columns);
}

std::string printable(std::string_view text) {
    constexpr std::string_view kReplaced = "\xEF\xBF\xBD";
    std::string out = chart::clean(text);
    for (std::size_t at = 0; (at = out.find(kReplaced, at)) != std::string::npos; ++at)
        out.replace(at, kReplaced.size(), "?");
    return out;
}

std::string number_cell(const Json& value) {
    if (value.is_string()) return printable(value.get<std::string>());
    if (!value.is_number()) return "-";
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", value.get<double>());
    return text;
}

std::string span_text(std::int64_t span_ms) {
    char text[48];
    const long long seconds = span_ms / 1000;
    if (span_ms < 10'000)
        std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(span_ms) / 1000);
    else if (seconds < 60)
        std::snprintf(text, sizeof text, "%lld s", seconds);
    else if (seconds < 3600)
        std::snprintf(text, sizeof text, "%lld:%02lld", seconds / 60, seconds % 60);
    else
        std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", seconds / 3600, seconds / 60 % 60,
                      seconds % 60);
    return text;
}

std::string sparkline(const std::vector<double>& values, std::size_t columns) {
    static constexpr const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const std::size_t first = values.size() > columns ? values.size() - columns : 0;
    double low = INFINITY;
    double high = -INFINITY;
    for (std::size_t i = first; i < values.size(); ++i) {
        if (!std::isfinite(values[i])) continue;
        low = std::min(low, values[i]);
        high = std::max(high, values[i]);
    }
    std::string line;
    for (std::size_t i = first; i < values.size(); ++i) {
        if (!std::isfinite(values[i])) {
            line += "×";
            continue;
        }
        const double height = high > low ? (values[i] - low) / (high - low) : 0.5;
        line += kBars[std::min<std::size_t>(7, static_cast<std::size_t>(height * 8))];
    }
    return line;
}

void Table::column(std::string_view title, Align align) {
    columns_.push_back({std::string(title), align, width_of(title)});
}

void Table::row(std::vector<std::string> cells) {
    cells.resize(columns_.size());
    for (std::size_t i = 0; i < cells.size(); ++i)
        columns_[i].width = std::max(columns_[i].width, width_of(cells[i]));
    rows_.push_back(std::move(cells));
}

std::string Table::text() const {
    std::string out;
    const auto line = [&](const auto& cell_of) {
        std::string text;
        for (std::size_t i = 0; i < columns_.size(); ++i) text += (i == 0 ? "" : "  ") + cell_of(i);
        text.erase(text.find_last_not_of(' ') + 1);
        out += text + "\n";
    };
    line([&](std::size_t i) {
        return styled(padded(columns_[i].title, columns_[i].width, columns_[i].align), Tone::kDim);
    });
    for (const auto& row : rows_)
        line([&](std::size_t i) { return padded(row[i], columns_[i].width, columns_[i].align); });
    return out;
}

}  // namespace tune::cli
