#pragma once
// Points from one space to another: a study whose space was extended, a warm start, a replay.

#include "base/json.h"
#include "base/result.h"
#include "tuner/space/space.h"

namespace tune::tuner {

/// The point in another space. Parameters of the same name keep their values, what `to` does not
/// know is dropped, and what `from` does not know gets its `init`, or its only value. Errors:
/// kInvalidParameterValue naming the parameter that cannot be carried over and why.
[[nodiscard]] Result<Point> carry_over(const Space& from, const Point& point, const Space& to);

/// Whether the carried point still says what a trial ran with: each value of `point` stands in
/// `carried` (of the space `to`), unchanged. Errors: kInvalidParameterValue naming the parameter
/// that is gone, switched off or has another value.
[[nodiscard]] Result<void> check_kept(const Space& from, const Point& point, const Space& to,
                                      const Point& carried);

/// The same as carry_over for values by name.
[[nodiscard]] Result<Point> point_of_params(const Json& params, const Space& to);

}  // namespace tune::tuner
