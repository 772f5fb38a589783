#include "tuner/study/carry_over.h"

#include <nlohmann/json.hpp>

namespace tune::tuner {
namespace {

Result<double> value_for(const Parameter& parameter, const Json& params) {
    const auto found = params.find(parameter.name);
    if (found != params.end()) {
        Result<double> internal = parameter.internal(*found);
        if (internal) return internal;
        return Error{Code::kInvalidParameterValue, "space." + parameter.name + ": a trial had " +
                                                       to_text(*found) + ": " +
                                                       internal.error().message};
    }
    if (parameter.init) return *parameter.init;
    if (parameter.is_single()) return parameter.low;
    return Error{Code::kInvalidParameterValue,
                 "space." + parameter.name +
                     " has no value in earlier trials; give it the one they had with `init`"};
}

}  // namespace

Result<Point> point_of_params(const Json& params, const Space& to) {
    Point point = to.empty_point();
    for (const std::size_t index : to.parents_first()) {
        if (!to.active(index, point)) continue;
        TUNE_TRY(internal, value_for(to[index], params));
        point[index] = internal;
    }
    TUNE_TRY_VOID(to.check(point));
    return point;
}

Result<Point> carry_over(const Space& from, const Point& point, const Space& to) {
    return point_of_params(from.to_json(point), to);
}

}  // namespace tune::tuner
