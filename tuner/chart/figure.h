#pragma once
// A chart as data: what is drawn, in the values' own units, not how. One Figure becomes SVG, PNG,
// terminal text or JSON; each back-end decides about pixels and characters by itself.
//
// All of tuner/chart is pure: no I/O, no clock, no terminal. Texts may hold anything: the back-ends
// clean them (text.h).

#include <cstddef>
#include <string>
#include <vector>

#include "base/json.h"
#include "tuner/chart/colour.h"

namespace tune::chart {

enum class ScaleKind {
    kLinear,
    kLog,       // both ends above zero
    kCategory,  // values are indices into `categories`
    kDuration   // seconds, shown as 1:02:03
};

struct Axis {
    std::string title = {};
    ScaleKind kind = ScaleKind::kLinear;
    double low = 0;
    double high = 1;
    std::vector<std::string> categories = {};
    bool is_whole = false;  // only whole numbers have a meaning
};

/// An axis that shows all finite values with a little room; for equal values, or none, a range
/// around them. kLog leaves out what is not above zero.
[[nodiscard]] Axis axis_for(std::string title, const std::vector<double>& values,
                            ScaleKind kind = ScaleKind::kLinear);
/// From the first to the last category.
[[nodiscard]] Axis category_axis(std::string title, std::vector<std::string> categories);

enum class Mark {
    kPoints,
    kLines,  // NaN between two lines
    kSteps,  // as kLines, with horizontal steps
    kBars,   // horizontal, from 0 to x at the category y
    kSpans,  // horizontal, from x to x2 at y
    kAreas   // one filled area and its outline: closed loops, NaN between two; even-odd
};

struct Layer {
    Mark mark = Mark::kPoints;
    std::string name = {};  // in the legend; empty: not there
    Role role = Role::kSeries0;
    std::vector<double> x = {};
    std::vector<double> y = {};   // as many
    std::vector<double> x2 = {};  // kSpans: as many
    /// 0..1 on the colour ramp, one a point (kLines: one a line, kAreas: one); empty: the role's
    /// colour.
    std::vector<double> shade = {};
    /// What a browser shows over a point, one a point (kAreas: one); may be empty.
    std::vector<std::string> labels = {};
    double size = 1;     // of points and lines, relative
    double opacity = 1;  // of the whole layer
    bool dashed = false;
    bool hollow = false;
    bool rimmed = false;  // points: with a rim, to be seen on any ground
};

struct Panel {
    std::string title = {};
    Axis x = {};
    Axis y = {};
    std::vector<Layer> layers = {};  // drawn in this order
    /// Parallel coordinates: one axis a category of x; y of the layers is 0..1 of it.
    std::vector<Axis> columns = {};
};

/// What the colour ramp stands for.
struct ColourBar {
    std::string title = {};
    std::string low = {};
    std::string high = {};
    /// Of bands: what stands between two, from the low end on. Empty: the ramp is continuous.
    std::vector<std::string> edges = {};
};

struct Figure {
    std::string title = {};
    std::string note = {};  // one line under the title
    std::vector<Panel> panels = {};
    std::size_t columns = 1;  // of panels
    ColourBar bar = {};       // without title: none
};

/// All that is plotted, for programs; NaN as null.
[[nodiscard]] Json to_json(const Figure& figure);

}  // namespace tune::chart
