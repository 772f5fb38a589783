#include "tuner/sampler/pbt/pbt_explore.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tuner/sampler/simple/random_sampler.h"

namespace tune::tuner {

double perturbed(const Parameter& parameter, double value, const std::vector<double>& factors,
                 double uniform) {
    if (parameter.is_single() || parameter.kind == Kind::kChoice) return value;
    if (parameter.kind == Kind::kOrdinal) return parameter.snap(value + (uniform < 0.5 ? -1 : 1));
    const auto count = static_cast<double>(factors.size());
    const double factor = factors[static_cast<std::size_t>(std::floor(uniform * count))];
    const double moved = parameter.low >= 0
                             ? value * factor
                             : value + (factor - 1) * (parameter.high - parameter.low);
    const double snapped = parameter.snap(moved);
    const bool stays = parameter.step > 0 && snapped == value && factor != 1;
    return stays ? parameter.snap(value + (factor > 1 ? parameter.step : -parameter.step))
                 : snapped;
}

Point explored(const Space& space, const Point& parent, const PbtOptions& options,
               UniformSource& source, std::uint64_t trial) {
    Point point = parent;
    for (std::size_t i = 0; i < space.size(); ++i) {
        if (!is_active(parent[i]) || space[i].is_single()) continue;
        std::array<double, 2> uniform{};
        source.fill(trial, stream_key("explore " + space[i].name), uniform);
        point[i] = uniform[0] < options.resample_probability
                       ? draw_uniform(space[i], source, trial)
                       : perturbed(space[i], parent[i], options.factors, uniform[1]);
    }
    return point;
}

}  // namespace tune::tuner
