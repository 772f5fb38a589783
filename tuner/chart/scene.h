#pragma once
// What is drawn, as few kinds of shapes in pixels: the layout makes them from a Figure, the SVG and
// PNG back-ends turn them into bytes.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tuner/chart/colour.h"
#include "tuner/chart/figure.h"

namespace tune::chart {

struct Paint {
    Role role = Role::kText;
    std::optional<std::uint32_t> rgb = {};  // the same in both themes; else the role's
    double opacity = 1;
};

struct Spot {
    double x = 0;
    double y = 0;
};

struct RectShape {
    double x = 0;
    double y = 0;
    double width = 0;
    double height = 0;
    Paint fill = {};
    double radius = 0;
    std::string label = {};
};

struct LineShape {
    std::vector<Spot> spots = {};
    Paint stroke = {};
    double width = 1;
    bool dashed = false;
};

/// Closed loops; what an odd number of them surrounds is filled.
struct AreaShape {
    std::vector<std::vector<Spot>> loops = {};
    Paint fill = {};
    std::string label = {};
};

struct DotShape {
    Spot centre = {};
    double radius = 3;
    Paint paint = {};
    bool hollow = false;
    std::string label = {};
};

enum class Anchor { kStart, kMiddle, kEnd };

struct TextShape {
    Spot at = {};  // on the base line
    std::string text = {};
    double size = 12;
    Anchor anchor = Anchor::kStart;
    Paint paint = {};
    bool bold = false;
    bool upwards = false;  // turned a quarter to the left
};

/// What follows is cut to the rectangle; width 0 ends it.
struct ClipShape {
    double x = 0;
    double y = 0;
    double width = 0;
    double height = 0;
};

using Shape = std::variant<RectShape, LineShape, AreaShape, DotShape, TextShape, ClipShape>;

struct Scene {
    double width = 0;
    double height = 0;
    std::string title = {};  // for people who cannot see it
    std::vector<Shape> shapes = {};
};

struct SceneSize {
    double width = 900;  // 200..8000
    double height = 0;   // 0: by the number of panels
};

/// Lays the figure out. Points and lines that would fall on the same half pixel are drawn once, so
/// that the scene stays small for any number of trials. All texts are clean.
[[nodiscard]] Scene layout(const Figure& figure, SceneSize size = {});

}  // namespace tune::chart
