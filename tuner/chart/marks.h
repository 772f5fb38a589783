#pragma once
// The layers of one panel as shapes. Private to tuner/chart.

#include "tuner/chart/scene.h"

namespace tune::chart {

struct Frame {
    double left = 0;
    double top = 0;
    double width = 0;
    double height = 0;
};

/// The pixel of a value; NaN coordinates where the axes cannot show it.
[[nodiscard]] Spot spot_of(const Panel& panel, const Frame& frame, double x, double y);

/// The shade of item `index`, or the role's colour.
[[nodiscard]] Paint paint_of(const Layer& layer, std::size_t index);

void draw_layer(const Panel& panel, const Layer& layer, const Frame& frame, Scene& scene);

}  // namespace tune::chart
