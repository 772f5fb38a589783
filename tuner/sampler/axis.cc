#include "tuner/sampler/axis.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "tuner/sampler/uniform.h"

namespace tune::tuner {

Axis Axis::of(const Parameter& parameter) {
    TUNE_CHECK(!parameter.is_single(), "a parameter with one value has nothing to model");
    Axis axis;
    axis.key = stream_key(parameter.name);
    axis.value_low = parameter.low;
    axis.value_high = parameter.high;
    if (parameter.kind == tuner::Kind::kChoice) {
        axis.kind = Axis::Kind::kCategory;
        axis.categories = parameter.high + 1;
        return axis;
    }
    axis.kind = parameter.step > 0 ? Axis::Kind::kStepped : Axis::Kind::kContinuous;
    axis.step = parameter.step;
    axis.log = parameter.log;
    axis.low = axis.cell_low(parameter.low);
    axis.high = axis.cell_high(parameter.high);
    axis.range = axis.high - axis.low;
    return axis;
}

double Axis::position(double internal) const {
    return log ? std::log(internal) : internal;
}

double Axis::value(double position) const {
    const double raw = log ? std::exp(position) : position;
    if (kind != Kind::kStepped) return std::clamp(raw, value_low, value_high);
    const double on_grid = value_low + std::rint((raw - value_low) / step) * step;
    return std::clamp(on_grid, value_low, value_high);
}

double Axis::cell_low(double internal) const {
    return position(internal - step / 2);
}

double Axis::cell_high(double internal) const {
    return position(internal + step / 2);
}

}  // namespace tune::tuner
