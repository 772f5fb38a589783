#pragma once
// A point that no rule forbids. Shared by the reader, which refuses spaces without one, and by the
// samplers, which replace forbidden proposals.

#include <cstdint>
#include <functional>
#include <optional>

#include "tuner/space/space.h"

namespace tune::tuner {

/// A value of the parameter; a function of (turn, parameter). Turns are numbered from 0.
using DrawValue = std::function<double(std::uint64_t turn, std::size_t parameter)>;

/// A whole point that passes Space::check and has the values of `given` where that has some
/// (kInactive or empty: open) and the conditions let them be. nullopt if none was found.
///
/// First whole points are drawn, so that an accepted one is distributed as `draw` is, under the
/// condition that it is allowed. If all of a bounded number are forbidden, the last is repaired:
/// a parameter of a broken rule at a time moves to the value that breaks the fewest. Repairs end
/// at few places; with `is_spread` the point then moves on from there (spread_feasible_point).
/// Cost: at most some 10^6 steps of rules; usually one check.
[[nodiscard]] std::optional<Point> find_feasible_point(const Space& space, const Point& given,
                                                       const DrawValue& draw,
                                                       bool is_spread = false);

/// Another allowed point from the allowed `start`: each open parameter in turn moves to a value
/// drawn among those that are allowed while the others stay (slice sampling, Neal 2003, with
/// shrinking brackets). Values of `given` stay. REQUIRES: the space has rules.
[[nodiscard]] Point spread_feasible_point(const Space& space, const Point& given, Point start,
                                          const DrawValue& draw);

/// Whether some point is allowed, as far as can be told.
enum class Feasibility {
    kSome,    ///< `example` is one
    kNone,    ///< the rules' parameters have finitely many values, and no combination is left
    kUnknown  ///< none was found
};

struct FeasibilitySearch {
    Feasibility answer = Feasibility::kUnknown;
    Point example = {};
};

/// find_feasible_point with draws from everywhere, then all combinations of what the rules read, if
/// they are not too many. A function of its arguments alone.
[[nodiscard]] FeasibilitySearch search_feasible_point(const Space& space, const Point& given);

}  // namespace tune::tuner
