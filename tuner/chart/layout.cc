// Where everything of a figure stands: title, note, legend and colour bar above, then panels in a
// grid, each with its axes and its marks (marks.cc).
//
// The layout measures texts by an estimate of the font (ems_of in text.h), as it does not know the
// browser's fonts. Tick labels that would touch are left out, names too long for their place are
// cut with an ellipsis, and texts that would begin outside of a narrow picture are left out. Axes
// come first, marks next and clipped to the frame, so that grid lines lie under the data; the
// upright axes of parallel coordinates come last, on patches of the background, since their digits
// lie among the lines.

#include <algorithm>
#include <cmath>
#include <set>

#include "tuner/chart/marks.h"
#include "tuner/chart/scale.h"
#include "tuner/chart/scene.h"
#include "tuner/chart/text.h"

namespace tune::chart {
namespace {

constexpr double kEdge = 16;       // around everything
constexpr double kLabelSize = 11;  // of ticks and the legend
constexpr double kTitleSize = 12;  // of axes and panels
constexpr double kPanelHeight = 380;
constexpr double kSmallPanelHeight = 230;
constexpr double kRowHeight = 22;  // of a bar
constexpr double kCategoryEmsMax = 18;

TextShape text_at(double x, double y, std::string text, Role role, double size,
                  Anchor anchor = Anchor::kStart) {
    return {.at = {x, y},
            .text = std::move(text),
            .size = size,
            .anchor = anchor,
            .paint = {.role = role}};
}

std::string tick_text(const Axis& axis, const Tick& tick) {
    return axis.kind == ScaleKind::kCategory ? clip_ems(clean(tick.label), kCategoryEmsMax)
                                             : tick.label;
}

double widest(const Axis& axis, const std::vector<Tick>& ticks) {
    double ems = 0;
    for (const Tick& tick : ticks) ems = std::max(ems, ems_of(tick_text(axis, tick)));
    return ems * kLabelSize;
}

std::size_t y_ticks(double height) {
    return std::max<std::size_t>(2, static_cast<std::size_t>(height / 45));
}

std::vector<Tick> y_ticks_of(const Panel& panel, double height) {
    // Categories are rows with a name each; there is room for one a line of text.
    const bool is_category = panel.y.kind == ScaleKind::kCategory;
    return ticks_of(panel.y, is_category ? static_cast<std::size_t>(height / (kLabelSize * 1.3))
                                         : y_ticks(height));
}

void draw_x_axis(const Axis& axis, const Frame& frame, bool with_grid, Scene& scene) {
    const double bottom = frame.top + frame.height;
    std::size_t count = std::max<std::size_t>(static_cast<std::size_t>(frame.width / 60), 3);
    double ems = kCategoryEmsMax;
    if (axis.kind == ScaleKind::kCategory) {
        // Long names are cut to their share of the axis before any is left out.
        const auto size = static_cast<double>(std::max<std::size_t>(axis.categories.size(), 1));
        ems = std::clamp(frame.width / size / kLabelSize - 1, 4.0, kCategoryEmsMax);
        const double each =
            std::min(widest(axis, ticks_of(axis, axis.categories.size())), ems * kLabelSize) + 6;
        count = static_cast<std::size_t>(frame.width / std::max(each, 12.0));
    }
    double free_from = -1e9;  // right end of the last label
    for (const Tick& tick : ticks_of(axis, std::max<std::size_t>(count, 1))) {
        const double x = frame.left + unit_of(axis, tick.value) * frame.width;
        if (with_grid)
            scene.shapes.emplace_back(
                LineShape{.spots = {{x, frame.top}, {x, bottom}}, .stroke = {.role = Role::kLine}});
        const std::string label = clip_ems(tick_text(axis, tick), ems);
        const double half = ems_of(label) * kLabelSize / 2;
        if (x - half < free_from + 6) continue;
        free_from = x + half;
        scene.shapes.emplace_back(
            text_at(x, bottom + 16, label, Role::kMuted, kLabelSize, Anchor::kMiddle));
    }
    if (!axis.title.empty())
        scene.shapes.emplace_back(text_at(frame.left + frame.width / 2, bottom + 34,
                                          clip_ems(clean(axis.title), frame.width / kTitleSize),
                                          Role::kText, kTitleSize, Anchor::kMiddle));
}

void draw_y_axis(const Panel& panel, const Frame& frame, double label_width, Scene& scene) {
    for (const Tick& tick : y_ticks_of(panel, frame.height)) {
        const double y = frame.top + (1 - unit_of(panel.y, tick.value)) * frame.height;
        if (panel.y.kind != ScaleKind::kCategory)
            scene.shapes.emplace_back(
                LineShape{.spots = {{frame.left, y}, {frame.left + frame.width, y}},
                          .stroke = {.role = Role::kLine}});
        scene.shapes.emplace_back(text_at(frame.left - 7, y + 4, tick_text(panel.y, tick),
                                          Role::kMuted, kLabelSize, Anchor::kEnd));
    }
    if (panel.y.title.empty()) return;
    TextShape title = text_at(frame.left - label_width - 18, frame.top + frame.height / 2,
                              clip_ems(clean(panel.y.title), frame.height / kTitleSize),
                              Role::kText, kTitleSize, Anchor::kMiddle);
    title.upwards = true;
    scene.shapes.emplace_back(std::move(title));
}

/// Parallel coordinates: an upright axis a column, with its own ticks and its name above.
void draw_columns(const Panel& panel, const Frame& frame, Scene& scene) {
    const double each = frame.width / static_cast<double>(panel.columns.size());
    for (std::size_t i = 0; i < panel.columns.size(); ++i) {
        const Axis& axis = panel.columns[i];
        const double x = frame.left + unit_of(panel.x, static_cast<double>(i)) * frame.width;
        scene.shapes.emplace_back(
            LineShape{.spots = {{x, frame.top}, {x, frame.top + frame.height}},
                      .stroke = {.role = Role::kMuted},
                      .width = 1.2});
        scene.shapes.emplace_back(
            text_at(x, frame.top - 10, clip_middle_ems(clean(axis.title), each / kTitleSize - 0.5),
                    Role::kText, kTitleSize, Anchor::kMiddle));
        const std::size_t count =
            axis.kind == ScaleKind::kCategory ? static_cast<std::size_t>(frame.height / 16) : 5;
        for (const Tick& tick : ticks_of(axis, count)) {
            const double y = frame.top + (1 - unit_of(axis, tick.value)) * frame.height;
            const std::string label =
                clip_ems(tick_text(axis, tick), std::max(each / kLabelSize - 2, 3.0));
            const double width = ems_of(label) * kLabelSize;
            // On a patch of the background, so that lines do not cross the digits.
            scene.shapes.emplace_back(RectShape{.x = x + 3,
                                                .y = y - 8,
                                                .width = width + 4,
                                                .height = 15,
                                                .fill = {.role = Role::kSurface, .opacity = 0.75},
                                                .radius = 3});
            scene.shapes.emplace_back(text_at(x + 5, y + 4, label, Role::kText, kLabelSize));
        }
    }
}

void draw_panel(const Panel& panel, const Frame& outer, Scene& scene) {
    const double title_height = panel.title.empty() ? 0 : 20;
    if (!panel.title.empty())
        scene.shapes.emplace_back(text_at(outer.left, outer.top + 12,
                                          clip_ems(clean(panel.title), outer.width / kTitleSize),
                                          Role::kText, kTitleSize));
    const bool is_parallel = !panel.columns.empty();
    Frame frame{.left = outer.left,
                .top = outer.top + title_height + (is_parallel ? 24 : 4),
                .width = outer.width,
                .height = 0};
    const double below = is_parallel ? 10 : panel.x.title.empty() ? 24 : 42;
    frame.height = std::max(outer.top + outer.height - below - frame.top, 20.0);
    const double label_width = is_parallel ? 0 : widest(panel.y, y_ticks_of(panel, frame.height));
    frame.left += label_width + (is_parallel ? 0 : panel.y.title.empty() ? 10 : 30);
    frame.width = std::max(outer.left + outer.width - frame.left - 10, 20.0);
    if (!is_parallel) {
        draw_x_axis(panel.x, frame, panel.x.kind != ScaleKind::kCategory, scene);
        draw_y_axis(panel, frame, label_width, scene);
    }
    scene.shapes.emplace_back(ClipShape{.x = frame.left - 4,
                                        .y = frame.top - 4,
                                        .width = frame.width + 14,
                                        .height = frame.height + 8});
    for (const Layer& layer : panel.layers) draw_layer(panel, layer, frame, scene);
    scene.shapes.emplace_back(ClipShape{});
    if (is_parallel) draw_columns(panel, frame, scene);
}

/// Names and colours of the layers, once each, from the left; true if there are any.
bool draw_legend(const Figure& figure, double y, double right, Scene& scene) {
    std::set<std::string> seen;
    double x = kEdge;
    for (const Panel& panel : figure.panels)
        for (const Layer& layer : panel.layers) {
            if (layer.name.empty() || !seen.insert(layer.name).second) continue;
            const std::string name = clip_ems(clean(layer.name), 24);
            const double width = 22 + ems_of(name) * kLabelSize + 14;
            if (x + width > right) return true;
            Paint paint = paint_of(layer, 0);
            paint.opacity = 1;
            if (layer.mark == Mark::kLines || layer.mark == Mark::kSteps)
                scene.shapes.emplace_back(LineShape{.spots = {{x, y - 4}, {x + 15, y - 4}},
                                                    .stroke = paint,
                                                    .width = 2,
                                                    .dashed = layer.dashed});
            else
                scene.shapes.emplace_back(DotShape{
                    .centre = {x + 8, y - 4}, .radius = 4, .paint = paint, .hollow = layer.hollow});
            scene.shapes.emplace_back(text_at(x + 20, y, name, Role::kText, kLabelSize));
            x += width;
        }
    return !seen.empty();
}

constexpr double kEdgeTextHeight = 14;  // under a bar of bands

/// The colours from low to high with their words; of bands also what stands between them.
void draw_bar(const ColourBar& bar, double y, double right, Scene& scene) {
    constexpr std::size_t kSmooth = 40;
    const bool is_banded = !bar.edges.empty();
    const std::size_t steps = is_banded ? bar.edges.size() + 1 : kSmooth;
    const double width = is_banded ? std::min(30.0 * static_cast<double>(steps), 330.0) : 120;
    const double each = width / static_cast<double>(steps);
    const std::string low = clean(bar.low);
    const std::string high = clean(bar.high);
    double x = right - ems_of(high) * kLabelSize;
    scene.shapes.emplace_back(text_at(x, y, high, Role::kMuted, kLabelSize));
    x -= width + 6;
    for (std::size_t i = 0; i < steps; ++i) {
        const auto at = static_cast<double>(i);
        const double shade = is_banded ? at / static_cast<double>(steps - 1) : (at + 0.5) / kSmooth;
        scene.shapes.emplace_back(RectShape{.x = x + at * each,
                                            .y = y - 9,
                                            .width = each + (i + 1 < steps ? 0.5 : 0),
                                            .height = 10,
                                            .fill = {.rgb = ramp_rgb(shade)}});
    }
    double free_from = x - each;
    for (std::size_t i = 0; i < bar.edges.size(); ++i) {
        const std::string text = clean(bar.edges[i]);
        const double centre = x + static_cast<double>(i + 1) * each;
        const double half = ems_of(text) * kLabelSize / 2;
        if (centre - half < free_from + 4) continue;
        free_from = centre + half;
        scene.shapes.emplace_back(text_at(centre, y + kEdgeTextHeight - 1, text, Role::kMuted,
                                          kLabelSize, Anchor::kMiddle));
    }
    x -= 6;
    scene.shapes.emplace_back(text_at(x, y, low, Role::kMuted, kLabelSize, Anchor::kEnd));
    x -= ems_of(low) * kLabelSize + 10;
    scene.shapes.emplace_back(
        text_at(x, y, clip_ems(clean(bar.title), 30), Role::kText, kLabelSize, Anchor::kEnd));
}

double natural_height(const Figure& figure, double head) {
    const std::size_t columns = std::max<std::size_t>(figure.columns, 1);
    const std::size_t rows =
        std::max<std::size_t>((figure.panels.size() + columns - 1) / columns, 1);
    if (rows > 1 || columns > 1)
        return head + static_cast<double>(rows) * kSmallPanelHeight + kEdge;
    double height = kPanelHeight;
    if (!figure.panels.empty() && figure.panels[0].y.kind == ScaleKind::kCategory) {
        // Bars and the like: as high as they have rows.
        const auto bars = static_cast<double>(figure.panels[0].y.categories.size());
        height = std::clamp(bars * kRowHeight + 60, 120.0, 6000.0);
    }
    return head + height + kEdge;
}

}  // namespace

Scene layout(const Figure& figure, SceneSize size) {
    Scene scene{.title = clean(figure.title)};
    scene.width = std::clamp(size.width, 200.0, 8000.0);
    const double right = scene.width - kEdge;
    double head = kEdge + 14;
    TextShape title =
        text_at(kEdge, head, clip_ems(scene.title, (right - kEdge) / 16), Role::kText, 16);
    title.bold = true;
    std::vector<Shape> top = {title};
    if (!figure.note.empty()) {
        head += 19;
        top.emplace_back(text_at(kEdge, head,
                                 clip_ems(clean(figure.note), (right - kEdge) / kTitleSize),
                                 Role::kMuted, kTitleSize));
    }
    const bool has_bar = !figure.bar.title.empty();
    if (draw_legend(figure, head + 22, has_bar ? scene.width / 2 : right, scene) || has_bar)
        head += 26;
    if (has_bar) draw_bar(figure.bar, head - 4, right, scene);
    head += figure.bar.edges.empty() ? 14 : 14 + kEdgeTextHeight;
    scene.height =
        std::clamp(size.height > 0 ? size.height : natural_height(figure, head), 150.0, 20'000.0);
    top.insert(
        top.begin(),
        RectShape{.width = scene.width, .height = scene.height, .fill = {.role = Role::kSurface}});
    scene.shapes.insert(scene.shapes.begin(), top.begin(), top.end());
    const std::size_t columns = std::max<std::size_t>(figure.columns, 1);
    const std::size_t rows =
        std::max<std::size_t>((figure.panels.size() + columns - 1) / columns, 1);
    const double gap = 18;
    const double width =
        (right - kEdge - gap * static_cast<double>(columns - 1)) / static_cast<double>(columns);
    const double height = (scene.height - kEdge / 2 - head) / static_cast<double>(rows);
    for (std::size_t i = 0; i < figure.panels.size(); ++i)
        draw_panel(figure.panels[i],
                   {.left = kEdge + static_cast<double>(i % columns) * (width + gap),
                    .top = head + static_cast<double>(i / columns) * height,
                    .width = width,
                    .height = height - (rows > 1 ? 6 : 0)},
                   scene);
    // In a picture too narrow for its names, those that would begin outside are left out.
    std::erase_if(scene.shapes, [&](const Shape& shape) {
        const auto* text = std::get_if<TextShape>(&shape);
        return text != nullptr && (text->at.x < 0 || text->at.x > scene.width);
    });
    return scene;
}

}  // namespace tune::chart
