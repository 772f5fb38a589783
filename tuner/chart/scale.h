#pragma once
// Values on an axis: where they stand, where the ticks are, how numbers are written.

#include <cstddef>
#include <string>
#include <vector>

#include "tuner/chart/figure.h"

namespace tune::chart {

/// 0 at the axis's low end, 1 at the high one; beyond that outside. NaN for what the axis cannot
/// show (NaN, infinite, not above zero on a logarithmic one).
[[nodiscard]] double unit_of(const Axis& axis, double value);

struct Tick {
    double value = 0;
    std::string label = {};
};

/// Ticks inside the axis, ascending: at round numbers, about `count` of them and at most twice as
/// many; kCategory: every category, thinned to at most `count`. Labels of one axis have the same
/// number of decimals.
[[nodiscard]] std::vector<Tick> ticks_of(const Axis& axis, std::size_t count);

/// 4 significant digits: "0.3125", "1.2e-05".
[[nodiscard]] std::string short_number(double value);
/// "0.8 s", "12 s", "3:07", "1:02:03".
[[nodiscard]] std::string duration_label(double seconds);

}  // namespace tune::chart
