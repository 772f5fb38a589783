// A figure as text. A braille character has 2 x 4 dots, so a plot of 80 x 20 characters has 160 x
// 80 of them (braille.h); bars are drawn in eighths of a block.
//
// A character has one colour and few dots, which decides the rest: areas are shown by their
// outline, as a filled one would hide the points; parallel coordinates show the best 30 lines, as
// more cannot be told apart. Every line is measured in cells, where East Asian characters take two,
// and holds at most `columns` of them, so that nothing wraps.

#include "tuner/chart/terminal.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tuner/chart/braille.h"
#include "tuner/chart/scale.h"
#include "tuner/chart/text.h"

namespace tune::chart {
namespace {

constexpr std::size_t kColumnsMin = 30;
constexpr std::size_t kLabelCellsMax = 22;
/// Rows of bars; what is beyond is counted.
constexpr std::size_t kBarsMax = 40;
/// Of parallel coordinates only the last lines, which are the best: dots cannot cross.
constexpr std::size_t kParallelLinesMax = 30;

/// The dark form of the colours reads on most terminals, light ones included.
int colour_of(const Layer& layer, std::size_t index) {
    if (index < layer.shade.size()) return terminal_colour(ramp_rgb(layer.shade[index]));
    return terminal_colour(rgb_of(layer.role, Theme::kDark));
}

std::string padded(const std::string& text, std::size_t cells, bool right = false) {
    const std::size_t used = cells_of(text);
    const std::string blanks(used < cells ? cells - used : 0, ' ');
    return right ? blanks + text : text + blanks;
}

std::string label_of(const Axis& axis, const Tick& tick) {
    return axis.kind == ScaleKind::kCategory ? clip_cells(clean(tick.label), kLabelCellsMax)
                                             : tick.label;
}

class PanelText {
public:
    PanelText(const Panel& panel, TerminalSize size) : panel_(panel), size_(size) {}

    std::string write() {
        std::string out;
        if (!panel_.title.empty()) out += clip_cells(clean(panel_.title), size_.columns) + "\n";
        const bool has_bars = !panel_.layers.empty() && panel_.layers[0].mark == Mark::kBars;
        return out + (has_bars ? bars() : plot());
    }

private:
    std::string bars() const {
        const Layer& layer = panel_.layers[0];
        const std::size_t name_max = std::min(kLabelCellsMax, size_.columns / 3);
        std::size_t name_cells = 0;
        for (const std::string& name : panel_.y.categories)
            name_cells = std::max(name_cells, cells_of(clip_cells(clean(name), name_max)));
        constexpr std::size_t kNumberCells = 16;
        const std::size_t wide = size_.columns > name_cells + kNumberCells + 12
                                     ? size_.columns - name_cells - kNumberCells
                                     : 10;
        std::string out;
        for (std::size_t i = 0; i < layer.x.size() && i < kBarsMax; ++i) {
            const auto row = static_cast<std::size_t>(layer.y[i]);
            const double share = std::clamp(unit_of(panel_.x, layer.x[i]), 0.0, 1.0);
            out += padded(clip_cells(clean(panel_.y.categories[row]), name_max), name_cells) + " " +
                   coloured(bar(share, wide), colour_of(layer, i), size_.colours) + " " +
                   (i < layer.labels.size() ? clip_cells(clean(layer.labels[i]), kNumberCells - 2)
                                            : short_number(layer.x[i])) +
                   "\n";
        }
        if (layer.x.size() > kBarsMax)
            out += "and " + std::to_string(layer.x.size() - kBarsMax) + " more\n";
        return out;
    }

    /// Eighths of a character.
    static std::string bar(double share, std::size_t cells) {
        static constexpr const char* kParts[] = {"",  "▏", "▎", "▍",  //
                                                 "▌", "▋", "▊", "▉"};
        const auto eighths = static_cast<std::size_t>(
            std::lround((std::isfinite(share) ? share : 0) * static_cast<double>(cells * 8)));
        std::string out;
        for (std::size_t i = 0; i < eighths / 8; ++i) out += "█";
        out += kParts[eighths % 8];
        return out.empty() ? "▏" : out;
    }

    std::string plot() {
        const bool is_parallel = !panel_.columns.empty();
        std::vector<Tick> ticks;
        if (!is_parallel)
            ticks = ticks_of(panel_.y, panel_.y.kind == ScaleKind::kCategory
                                           ? size_.rows
                                           : std::max<std::size_t>(size_.rows / 3, 2));
        std::size_t label_cells = 0;
        for (const Tick& tick : ticks)
            label_cells = std::max(label_cells, cells_of(label_of(panel_.y, tick)));
        const std::size_t wide =
            size_.columns > label_cells + 12 ? size_.columns - label_cells - 2 : 10;
        Braille canvas(wide, size_.rows);
        if (is_parallel) draw_columns(canvas);
        for (const Layer& layer : panel_.layers) draw(layer, canvas);
        std::vector<std::string> labels(size_.rows);
        for (const Tick& tick : ticks) {
            const double up = unit_of(panel_.y, tick.value);
            const auto row = static_cast<long>((1 - up) * static_cast<double>(size_.rows) - 1e-9);
            labels[static_cast<std::size_t>(
                std::clamp(row, 0L, static_cast<long>(size_.rows) - 1))] = label_of(panel_.y, tick);
        }
        std::string out;
        if (!is_parallel && !panel_.y.title.empty())
            out += clip_cells(clean(panel_.y.title), size_.columns) + "\n";
        for (std::size_t row = 0; row < size_.rows; ++row) {
            const std::string line = padded(labels[row], label_cells, true) +
                                     (labels[row].empty() ? " │" : " ┤") +
                                     canvas.row(row, size_.colours);
            out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
        }
        out += std::string(label_cells + 1, ' ') + "└";
        for (std::size_t i = 0; i < wide; ++i) out += "─";
        return out + "\n" + below(panel_.x, label_cells + 2, wide) +
               (is_parallel ? ranges(label_cells + 2, wide) : "");
    }

    void draw_columns(Braille& canvas) const {
        const int colour = terminal_colour(rgb_of(Role::kLine, Theme::kDark));
        for (std::size_t i = 0; i < panel_.columns.size(); ++i) {
            long x = 0;
            long y = 0;
            if (place(static_cast<double>(i), 0, canvas, x, y))
                canvas.line(x, 0, x, canvas.height() - 1, colour);
        }
    }

    /// Under the names of parallel coordinates: what is lowest and highest in the picture.
    std::string ranges(std::size_t left, std::size_t wide) const {
        constexpr std::size_t kManyTicks = 12;
        Axis axis = panel_.x;
        for (std::size_t i = 0; i < axis.categories.size() && i < panel_.columns.size(); ++i) {
            const Axis& column = panel_.columns[i];
            const bool is_category = column.kind == ScaleKind::kCategory;
            const std::vector<Tick> ticks =
                ticks_of(column, is_category ? column.categories.size() : kManyTicks);
            axis.categories[i] =
                ticks.empty() ? "" : ticks.front().label + ".." + ticks.back().label;
        }
        const std::size_t lines = panel_.layers.empty() ? 0 : panel_.layers[0].shade.size();
        std::string said = "lowest..highest";
        if (lines > kParallelLinesMax)
            said += " of the best " + std::to_string(kParallelLinesMax) + " trials";
        return below(axis, left, wide) + clip_cells(said, left + wide) + "\n";
    }

    /// Tick labels under the axis, then its title.
    static std::string below(const Axis& axis, std::size_t left, std::size_t wide) {
        std::string line(left, ' ');
        std::size_t used = 0;  // cells of the plot's width
        const bool is_category = axis.kind == ScaleKind::kCategory;
        for (const Tick& tick : ticks_of(axis, is_category ? wide / 6 : wide / 12)) {
            const double unit = unit_of(axis, tick.value);
            if (!(unit >= 0 && unit <= 1)) continue;
            const std::size_t room = is_category && !axis.categories.empty()
                                         ? wide / axis.categories.size()
                                         : kLabelCellsMax;
            const std::string label =
                clip_cells(label_of(axis, tick), std::max<std::size_t>(room, 7) - 1);
            const std::size_t cells = cells_of(label);
            const auto centre = static_cast<std::size_t>(unit * static_cast<double>(wide));
            const std::size_t start = centre > cells / 2 ? centre - cells / 2 : 0;
            const std::size_t place = std::min(start, wide > cells ? wide - cells : 0);
            if (used > 0 && place < used + 1) continue;
            if (place < used) continue;
            line += std::string(place - used, ' ') + label;
            used = place + cells;
        }
        std::string out = line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
        if (axis.title.empty()) return out;
        const std::string title = clip_cells(clean(axis.title), wide);
        return out + std::string(left + (wide - cells_of(title)) / 2, ' ') + title + "\n";
    }

    [[nodiscard]] bool place(double x, double y, const Braille& canvas, long& column,
                             long& row) const {
        const double across = unit_of(panel_.x, x);
        const double up = panel_.columns.empty() ? unit_of(panel_.y, y) : y;
        if (!std::isfinite(across) || !std::isfinite(up)) return false;
        const double far = 1e5;
        column =
            std::lround(std::clamp(across * static_cast<double>(canvas.width() - 1), -far, far));
        row =
            std::lround(std::clamp((1 - up) * static_cast<double>(canvas.height() - 1), -far, far));
        return true;
    }

    void draw(const Layer& layer, Braille& canvas) const {
        switch (layer.mark) {
            case Mark::kPoints: return draw_points(layer, canvas);
            case Mark::kLines:
            case Mark::kSteps: return draw_lines(layer, canvas);
            case Mark::kSpans: return draw_spans(layer, canvas);
            case Mark::kAreas: return draw_outline(layer, canvas);
            case Mark::kBars: return;  // they are text
        }
    }

    void draw_points(const Layer& layer, Braille& canvas) const {
        long x = 0;
        long y = 0;
        for (std::size_t i = 0; i < layer.x.size(); ++i) {
            if (!place(layer.x[i], layer.y[i], canvas, x, y)) continue;
            canvas.dot(x, y, colour_of(layer, i));
            if (layer.size <= 1) continue;
            // Larger points as a small cross.
            for (const auto& [dx, dy] : {std::pair{-1L, 0L}, {1L, 0L}, {0L, -1L}, {0L, 1L}})
                canvas.dot(x + dx, y + dy, colour_of(layer, i));
        }
    }

    void draw_lines(const Layer& layer, Braille& canvas) const {
        bool has_last = false;
        long last_x = 0;
        long last_y = 0;
        std::size_t index = 0;
        const std::size_t lines = layer.shade.size();
        const std::size_t first =
            !panel_.columns.empty() && lines > kParallelLinesMax ? lines - kParallelLinesMax : 0;
        for (std::size_t i = 0; i < layer.x.size(); ++i) {
            long x = 0;
            long y = 0;
            if (index < first || !place(layer.x[i], layer.y[i], canvas, x, y)) {
                if (std::isnan(layer.x[i])) {
                    ++index;
                    has_last = false;
                }
                continue;
            }
            const int colour = colour_of(layer, index);
            if (!has_last) {
                canvas.dot(x, y, colour);
            } else if (layer.mark == Mark::kSteps) {
                canvas.line(last_x, last_y, x, last_y, colour);
                canvas.line(x, last_y, x, y, colour);
            } else {
                canvas.line(last_x, last_y, x, y, colour);
            }
            has_last = true;
            last_x = x;
            last_y = y;
        }
    }

    /// A filled area would hide the points: its outline stands for it, but for what lies on the
    /// frame.
    void draw_outline(const Layer& layer, Braille& canvas) const {
        const auto is_edge = [](double at) { return at < 1e-9 || at > 1 - 1e-9; };
        std::size_t first = 0;
        for (std::size_t i = 0; i <= layer.x.size(); ++i) {
            if (i < layer.x.size() && !std::isnan(layer.x[i])) continue;
            for (std::size_t k = first; k < i; ++k) {
                const std::size_t next = k + 1 < i ? k + 1 : first;
                const double across[] = {unit_of(panel_.x, layer.x[k]),
                                         unit_of(panel_.x, layer.x[next])};
                const double up[] = {unit_of(panel_.y, layer.y[k]),
                                     unit_of(panel_.y, layer.y[next])};
                const bool is_on_frame =
                    (is_edge(across[0]) && std::abs(across[0] - across[1]) < 1e-9) ||
                    (is_edge(up[0]) && std::abs(up[0] - up[1]) < 1e-9);
                long x[2] = {};
                long y[2] = {};
                if (is_on_frame || !place(layer.x[k], layer.y[k], canvas, x[0], y[0]) ||
                    !place(layer.x[next], layer.y[next], canvas, x[1], y[1]))
                    continue;
                canvas.line(x[0], y[0], x[1], y[1], colour_of(layer, 0));
            }
            first = i + 1;
        }
    }

    void draw_spans(const Layer& layer, Braille& canvas) const {
        for (std::size_t i = 0; i < layer.x.size() && i < layer.x2.size(); ++i) {
            long x0 = 0;
            long x1 = 0;
            long y = 0;
            if (!place(layer.x[i], layer.y[i], canvas, x0, y)) continue;
            if (!place(layer.x2[i], layer.y[i], canvas, x1, y)) continue;
            canvas.line(x0, y, x1, y, colour_of(layer, i));
        }
    }

    const Panel& panel_;
    TerminalSize size_;
};

std::string legend(const Figure& figure, TerminalSize size) {
    std::set<std::string> seen;
    std::string out;
    std::size_t used = 0;
    for (const Panel& panel : figure.panels)
        for (const Layer& layer : panel.layers) {
            if (layer.name.empty() || layer.mark == Mark::kBars || !seen.insert(layer.name).second)
                continue;
            const std::string name = clip_cells(clean(layer.name), 24);
            if (used + cells_of(name) + 4 > size.columns) return out + "\n";
            const bool is_line = layer.mark == Mark::kLines || layer.mark == Mark::kSteps;
            const std::string sign = is_line ? "━" : "●";
            out += coloured(sign, colour_of(layer, 0), size.colours) + " " + name + "  ";
            used += cells_of(name) + 4;
        }
    return out.empty() ? out : out + "\n";
}

/// Of bands: what stands between two, so that lines can be told apart.
std::string band_text(const ColourBar& bar, TerminalSize size) {
    std::string out = clip_cells(clean(bar.title), size.columns / 3) + ": " + clean(bar.low);
    std::size_t used = cells_of(out);
    const auto count = static_cast<double>(bar.edges.size());
    for (std::size_t i = 0; i < bar.edges.size(); ++i) {
        // The line of an edge has the colour of the band that it opens.
        const int colour = terminal_colour(ramp_rgb(static_cast<double>(i + 1) / count));
        const std::string edge = " ━ " + clean(bar.edges[i]);
        used += cells_of(edge);
        if (used + 2 + cells_of(clean(bar.high)) > size.columns) break;
        out += coloured(edge, colour, size.colours);
    }
    return out + " ━ " + clean(bar.high) + "\n";
}

std::string bar_text(const ColourBar& bar, TerminalSize size) {
    if (!bar.edges.empty()) return band_text(bar, size);
    if (bar.title.empty() || !size.colours) return {};
    std::string out = clip_cells(clean(bar.title), size.columns / 2) + " " + clean(bar.low) + " ";
    for (int i = 0; i < 12; ++i) out += coloured("█", terminal_colour(ramp_rgb(i / 11.0)), true);
    return out + " " + clean(bar.high) + "\n";
}

}  // namespace

std::string to_terminal(const Figure& figure, TerminalSize size) {
    size.columns = std::max(size.columns, kColumnsMin);
    size.rows = std::max<std::size_t>(size.rows, 3);
    std::string out = clip_cells(clean(figure.title), size.columns) + "\n";
    if (!figure.note.empty()) out += clip_cells(clean(figure.note), size.columns) + "\n";
    out += legend(figure, size) + bar_text(figure.bar, size);
    for (const Panel& panel : figure.panels) out += "\n" + PanelText(panel, size).write();
    return out;
}

}  // namespace tune::chart
