#pragma once
// The points that trials have had, for samplers that propose none twice. Private to tuner/sampler.

#include <cstdint>
#include <unordered_map>

#include "tuner/sampler/simple/finite_points.h"
#include "tuner/space/space.h"

namespace tune::tuner {

/// What is known of a point.
struct Seen {
    std::uint64_t first = 0;   // the lowest number of a trial of this point
    bool is_complete = false;  // one of them has a value
};

using SeenPoints = std::unordered_map<Point, Seen, PointHash, PointEqual>;

}  // namespace tune::tuner
