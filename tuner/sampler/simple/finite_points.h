#pragma once
// The points of a finite space, one by one.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tuner/space/space.h"

namespace tune::tuner {

/// Points that are listed at most; 10 parameters take 8 MB.
inline constexpr std::size_t kListedPointsMax = 100'000;

/// Every point whose values are among `levels` (internal values by parameter), each once: what the
/// conditions switch off has no level, and forbidden points are left out. nullopt if there are more
/// than kListedPointsMax. REQUIRES:
/// no empty levels. Cost: O(points x parameters).
[[nodiscard]] std::optional<std::vector<Point>> list_points(
    const Space& space, const std::vector<std::vector<double>>& levels);

/// All values of a parameter; `points` of a continuous one, equally spaced (in the logarithm where
/// it is logarithmic), with both bounds, or equally likely where it has a prior. Empty: it is
/// continuous and `points` is 0, or it has more than kListedPointsMax values.
[[nodiscard]] std::vector<double> levels_of(const Parameter& parameter, std::size_t points);

/// A hash of a point's bits, equal for equal points.
struct PointHash {
    std::size_t operator()(const Point& point) const;
};

/// Equal values; inactive ones equal each other.
struct PointEqual {
    bool operator()(const Point& a, const Point& b) const;
};

}  // namespace tune::tuner
