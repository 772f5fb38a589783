#include "tuner/study/journal/carry_over.h"

#include <cmath>
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

/// Equal as JSON values; on a grid also but for what rounding costs.
bool is_same_value(const Json& was, const Json& now, double step) {
    if (was == now) return true;
    return step > 0 && was.is_number() && now.is_number() &&
           std::abs(was.get<double>() - now.get<double>()) <= 1e-9 * step;
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

Result<void> check_kept(const Space& from, const Point& point, const Space& to,
                        const Point& carried) {
    for (std::size_t i = 0; i < from.size(); ++i) {
        if (!is_active(point[i])) continue;
        const Json was = from[i].external(point[i]);
        const auto lost = [&](const std::string& why) {
            return Error{Code::kInvalidParameterValue,
                         "space." + from[i].name + ": the trial had " + to_text(was) + ", " + why};
        };
        const auto index = to.find(from[i].name);
        if (!index) return lost("and the parameter is gone; keep it");
        if (!is_active(carried[*index]))
            return lost("and its conditions switch it off there; let them hold");
        const Json now = to[*index].external(carried[*index]);
        if (!is_same_value(was, now, from[i].step)) return lost("and would have " + to_text(now));
    }
    return {};
}

}  // namespace tune::tuner
