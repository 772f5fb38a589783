#pragma once
// A scene as SVG 1.1: one file without scripts, fonts or links.

#include <optional>
#include <string>

#include "tuner/chart/scene.h"

namespace tune::chart {

/// `theme`: none follows the reader's (a style sheet inside, light where it is not understood).
[[nodiscard]] std::string to_svg(const Scene& scene, std::optional<Theme> theme = {});

}  // namespace tune::chart
