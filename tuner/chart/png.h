#pragma once
// A scene as PNG, drawn by cairo. The library is loaded when the first picture is made, not linked:
// it brings in fonts and X11, which would slow every other verb's start and grow the server.

#include <string>

#include "base/result.h"
#include "tuner/chart/scene.h"

namespace tune::chart {

/// The bytes of the file. `scale`: pixels a unit of the scene, 0.5..4. Errors: kNotImplemented when
/// the machine has no cairo (says what to install); kInvalidParameterValue when the picture would
/// have more than 100 million pixels; kInternalError when cairo fails. Not for several threads at
/// once.
[[nodiscard]] Result<std::string> to_png(const Scene& scene, Theme theme, double scale = 2);

}  // namespace tune::chart
