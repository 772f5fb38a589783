#include "tuner/sampler/axis.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "tuner/sampler/normal.h"
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
        double sum = 0;
        for (const double weight : parameter.weights) axis.shares.push_back(sum += weight);
        for (double& share : axis.shares) share /= sum;
        return axis;
    }
    axis.kind = parameter.step > 0 ? Axis::Kind::kStepped : Axis::Kind::kContinuous;
    axis.step = parameter.step;
    axis.log = parameter.log;
    axis.low = axis.cell_low(parameter.low);
    axis.high = axis.cell_high(parameter.high);
    axis.range = axis.high - axis.low;
    axis.spread = parameter.spread;
    if (parameter.spread > 0) axis.center = axis.position(parameter.center);
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

double Axis::quantile(double uniform) const {
    if (spread == 0) return low + range * uniform;
    const double low_tail = upper_tail((center - low) / spread);
    const double high_tail = upper_tail((high - center) / spread);
    const double z = truncated_normal_quantile(low_tail, high_tail, uniform);
    return std::clamp(center + spread * z, low, high);
}

double Axis::share_below(double at_position) const {
    if (spread == 0) return (at_position - low) / range;
    const auto below = [](double z) { return z <= 0 ? upper_tail(-z) : 1 - upper_tail(z); };
    const double low_tail = upper_tail((center - low) / spread);
    const double high_tail = upper_tail((high - center) / spread);
    const double share =
        (below((at_position - center) / spread) - low_tail) / (1 - low_tail - high_tail);
    return std::clamp(share, 0.0, 1.0);
}

double Axis::category_at(double uniform) const {
    if (shares.empty()) return std::min(std::floor(uniform * categories), categories - 1);
    const auto at = std::upper_bound(shares.begin(), shares.end() - 1, uniform);
    return static_cast<double>(at - shares.begin());
}

double Axis::category_share(double category) const {
    if (shares.empty()) return 1 / categories;
    const auto index = static_cast<std::size_t>(category);
    return shares[index] - (index == 0 ? 0 : shares[index - 1]);
}

double Axis::cell_low(double internal) const {
    return position(internal - step / 2);
}

double Axis::cell_high(double internal) const {
    return position(internal + step / 2);
}

double value_at(const Axis& axis, const Parameter& parameter, double position) {
    return axis.kind == Axis::Kind::kCategory ? position : parameter.snap(axis.value(position));
}

}  // namespace tune::tuner
