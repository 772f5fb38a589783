#pragma once
// One parameter as a sampler models it: on a line segment [low, high] that is widened by half a
// step and logarithmic where the parameter is (so that every grid value owns a cell of it), or as a
// set of categories. Private to tuner/sampler.

#include <cstdint>

#include "tuner/space/space.h"

namespace tune::tuner {

struct Axis {
    enum class Kind { kContinuous, kStepped, kCategory };

    Kind kind = Kind::kContinuous;
    bool log = false;
    double low = 0;        // of the segment
    double high = 0;       // of the segment
    double range = 0;      // high - low
    double value_low = 0;  // of the parameter
    double value_high = 0;
    double step = 0;        // kStepped
    double categories = 0;  // kCategory: how many
    std::uint64_t key = 0;  // names the parameter's stream of random numbers

    /// REQUIRES: the parameter has more than one value.
    [[nodiscard]] static Axis of(const Parameter& parameter);

    /// Internal value -> position on the segment (category: the index itself).
    [[nodiscard]] double position(double internal) const;

    /// Position -> internal value: exp, grid and bounds.
    [[nodiscard]] double value(double position) const;

    /// The cell of a grid value, as positions. REQUIRES: kStepped.
    [[nodiscard]] double cell_low(double internal) const;
    [[nodiscard]] double cell_high(double internal) const;
};

}  // namespace tune::tuner
