// The layers of a panel as shapes: points, lines, steps, bars, spans and areas.
//
// A study may have 100,000 trials; what of them cannot be seen is not drawn. Points of one colour
// that fall on the same half pixel are drawn once; a long line keeps, of every pixel column, its
// first, lowest, highest and last spot, which covers the same pixels; labels for tool tips are left
// out of layers that have too many to be read. Coordinates far outside of the picture are cut, as
// some renderers overflow; NaN in x ends a line, and a value that an axis cannot show is left out.

#include "tuner/chart/marks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "tuner/chart/scale.h"
#include "tuner/chart/text.h"

namespace tune::chart {
namespace {

/// Points of one layer that are drawn with what a browser shows over them; more would make the file
/// large without anybody reading them.
constexpr std::size_t kLabelsMax = 2000;
/// Pixels beyond which coordinates are cut: far outside of any picture, small enough for every
/// renderer.
constexpr double kFar = 20'000;

double near_picture(double pixel) {
    return std::isnan(pixel) ? pixel : std::clamp(pixel, -kFar, kFar);
}

bool is_drawable(Spot spot) {
    return std::isfinite(spot.x) && std::isfinite(spot.y);
}

/// Half pixels as a key: what has the same one looks the same.
std::uint64_t place_of(Spot spot, std::uint64_t colour) {
    const auto half = [](double at) {
        return static_cast<std::uint64_t>(std::llround(at * 2) + 65'536) & 0x3FFFF;
    };
    return (half(spot.x) << 18 | half(spot.y)) ^ (colour << 40);
}

std::uint64_t colour_key(const Paint& paint) {
    return paint.rgb ? *paint.rgb : static_cast<std::uint64_t>(paint.role);
}

void draw_points(const Panel& panel, const Layer& layer, const Frame& frame, Scene& scene) {
    std::unordered_set<std::uint64_t> drawn;
    const bool with_labels = layer.labels.size() <= kLabelsMax;
    for (std::size_t i = 0; i < layer.x.size(); ++i) {
        const Spot spot = spot_of(panel, frame, layer.x[i], layer.y[i]);
        if (!is_drawable(spot)) continue;
        const Paint paint = paint_of(layer, i);
        if (!drawn.insert(place_of(spot, colour_key(paint))).second) continue;
        DotShape dot{
            .centre = spot, .radius = 3.2 * layer.size, .paint = paint, .hollow = layer.hollow};
        if (with_labels && i < layer.labels.size()) dot.label = clean(layer.labels[i]);
        if (layer.rimmed)
            scene.shapes.emplace_back(DotShape{
                .centre = spot, .radius = dot.radius + 1.1, .paint = {.role = Role::kSurface}});
        scene.shapes.emplace_back(std::move(dot));
    }
}

/// Adds a line's next spot unless it is where the last one is.
void add_spot(std::vector<Spot>& spots, Spot next) {
    if (!spots.empty() && std::abs(spots.back().x - next.x) < 0.25 &&
        std::abs(spots.back().y - next.y) < 0.25)
        return;
    spots.push_back(next);
}

/// A pixel column of a long line as its first, lowest, highest and last spot: nothing that can be
/// seen is lost.
std::vector<Spot> thinned(const std::vector<Spot>& spots) {
    constexpr std::size_t kDense = 2000;
    if (spots.size() < kDense) return spots;
    std::vector<Spot> kept;
    for (std::size_t i = 0; i < spots.size();) {
        std::size_t end = i;
        std::size_t low = i;
        std::size_t high = i;
        const double column = std::floor(spots[i].x);
        for (; end < spots.size() && std::floor(spots[end].x) == column; ++end) {
            if (spots[end].y < spots[low].y) low = end;
            if (spots[end].y > spots[high].y) high = end;
        }
        for (const std::size_t index : {i, std::min(low, high), std::max(low, high), end - 1})
            add_spot(kept, spots[index]);
        i = end;
    }
    return kept;
}

void draw_lines(const Panel& panel, const Layer& layer, const Frame& frame, Scene& scene) {
    LineShape line{.width = 1.6 * layer.size, .dashed = layer.dashed};
    std::size_t index = 0;
    const auto finish = [&] {
        line.spots = thinned(line.spots);
        line.stroke = paint_of(layer, index);
        if (line.spots.size() == 1)  // a line of one value
            scene.shapes.emplace_back(DotShape{
                .centre = line.spots[0], .radius = 2.4 * layer.size, .paint = line.stroke});
        else if (!line.spots.empty())
            scene.shapes.emplace_back(line);
        line.spots.clear();
        ++index;
    };
    for (std::size_t i = 0; i < layer.x.size(); ++i) {
        const Spot spot = spot_of(panel, frame, layer.x[i], layer.y[i]);
        if (!is_drawable(spot)) {
            if (std::isnan(layer.x[i])) finish();
            continue;
        }
        if (layer.mark == Mark::kSteps && !line.spots.empty())
            add_spot(line.spots, {spot.x, line.spots.back().y});
        add_spot(line.spots, spot);
    }
    finish();
}

void draw_bars(const Panel& panel, const Layer& layer, const Frame& frame, Scene& scene) {
    const double row = frame.height / std::max(panel.y.high - panel.y.low, 1.0);
    const double thick = std::min(row * 0.7, 26.0);
    for (std::size_t i = 0; i < layer.x.size(); ++i) {
        const Spot from = spot_of(panel, frame, std::max(0.0, panel.x.low), layer.y[i]);
        const Spot to = spot_of(panel, frame, layer.x[i], layer.y[i]);
        if (!is_drawable(from) || !is_drawable(to)) continue;
        RectShape bar{.x = std::min(from.x, to.x),
                      .y = to.y - thick / 2,
                      .width = std::max(std::abs(to.x - from.x), 1.0),
                      .height = thick,
                      .fill = paint_of(layer, i),
                      .radius = 2};
        if (i < layer.labels.size()) {
            scene.shapes.emplace_back(TextShape{.at = {to.x + 6, to.y + 4},
                                                .text = clean(layer.labels[i]),
                                                .paint = {.role = Role::kMuted}});
            bar.label = clean(layer.labels[i]);
        }
        scene.shapes.emplace_back(std::move(bar));
    }
}

void draw_spans(const Panel& panel, const Layer& layer, const Frame& frame, Scene& scene) {
    const double row = frame.height / std::max(panel.y.high - panel.y.low, 1.0);
    const double thick = std::clamp(row * 0.8, 0.6, 18.0);
    const bool with_labels = layer.labels.size() <= kLabelsMax;
    for (std::size_t i = 0; i < layer.x.size() && i < layer.x2.size(); ++i) {
        const Spot from = spot_of(panel, frame, layer.x[i], layer.y[i]);
        const Spot to = spot_of(panel, frame, layer.x2[i], layer.y[i]);
        if (!is_drawable(from) || !is_drawable(to)) continue;
        RectShape span{.x = from.x,
                       .y = from.y - thick / 2,
                       .width = std::max(to.x - from.x, 1.0),
                       .height = thick,
                       .fill = paint_of(layer, i),
                       .radius = thick > 6 ? 2.0 : 0.0};
        if (with_labels && i < layer.labels.size()) span.label = clean(layer.labels[i]);
        scene.shapes.emplace_back(std::move(span));
    }
}

/// Whether a line from one to the other would lie on the panel's frame.
bool is_on_frame(const Frame& frame, Spot from, Spot to) {
    const auto both_at = [](double a, double b, double edge) {
        return std::abs(a - edge) < 0.01 && std::abs(b - edge) < 0.01;
    };
    return both_at(from.x, to.x, frame.left) || both_at(from.x, to.x, frame.left + frame.width) ||
           both_at(from.y, to.y, frame.top) || both_at(from.y, to.y, frame.top + frame.height);
}

/// The area, then its outline but for what lies on the frame.
void draw_area(const Panel& panel, const Layer& layer, const Frame& frame, Scene& scene) {
    AreaShape area{.fill = paint_of(layer, 0)};
    if (!layer.labels.empty()) area.label = clean(layer.labels[0]);
    std::vector<Shape> lines;
    std::vector<Spot> loop;
    const auto finish = [&] {
        if (loop.size() < 3) return loop.clear();
        LineShape line{.stroke = {.role = Role::kText, .opacity = 0.4}, .width = 0.7};
        for (std::size_t i = 0; i < loop.size(); ++i) {
            const Spot next = loop[(i + 1) % loop.size()];
            if (line.spots.empty()) line.spots.push_back(loop[i]);
            if (!is_on_frame(frame, loop[i], next)) {
                line.spots.push_back(next);
                continue;
            }
            if (line.spots.size() > 1) lines.emplace_back(line);
            line.spots.clear();
        }
        if (line.spots.size() > 1) lines.emplace_back(line);
        area.loops.push_back(std::move(loop));
        loop.clear();
    };
    for (std::size_t i = 0; i < layer.x.size(); ++i) {
        const Spot spot = spot_of(panel, frame, layer.x[i], layer.y[i]);
        if (is_drawable(spot))
            add_spot(loop, spot);
        else
            finish();
    }
    finish();
    if (!area.loops.empty()) scene.shapes.emplace_back(std::move(area));
    scene.shapes.insert(scene.shapes.end(), lines.begin(), lines.end());
}

}  // namespace

Spot spot_of(const Panel& panel, const Frame& frame, double x, double y) {
    const double across = unit_of(panel.x, x);
    const double up = panel.columns.empty() ? unit_of(panel.y, y) : y;
    return {near_picture(frame.left + across * frame.width),
            near_picture(frame.top + (1 - up) * frame.height)};
}

Paint paint_of(const Layer& layer, std::size_t index) {
    Paint paint{.role = layer.role, .opacity = layer.opacity};
    if (index < layer.shade.size()) paint.rgb = ramp_rgb(layer.shade[index]);
    return paint;
}

void draw_layer(const Panel& panel, const Layer& layer, const Frame& frame, Scene& scene) {
    switch (layer.mark) {
        case Mark::kPoints: return draw_points(panel, layer, frame, scene);
        case Mark::kLines:
        case Mark::kSteps: return draw_lines(panel, layer, frame, scene);
        case Mark::kBars: return draw_bars(panel, layer, frame, scene);
        case Mark::kSpans: return draw_spans(panel, layer, frame, scene);
        case Mark::kAreas: return draw_area(panel, layer, frame, scene);
    }
}

}  // namespace tune::chart
