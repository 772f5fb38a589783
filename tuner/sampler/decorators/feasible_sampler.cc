#include "tuner/sampler/decorators/feasible_sampler.h"

#include <string>
#include <utility>

#include "tuner/sampler/uniform.h"
#include "tuner/space/feasible_point.h"

namespace tune::tuner {

FeasibleSampler::FeasibleSampler(const Space& space, std::unique_ptr<Sampler> inner,
                                 std::uint64_t seed)
    : space_(space),
      inner_(std::move(inner)),
      seed_(seed),
      example_(look_for_allowed(space, {}).example) {}

Result<void> FeasibleSampler::observe(const Observation& observation) {
    return inner_->observe(observation);
}

Point FeasibleSampler::suggest(std::uint64_t number, const Point& fixed) {
    Point point = inner_->suggest(number, fixed);
    if (!space_.is_forbidden(point)) return point;
    const DrawValue draw = [&](std::uint64_t turn, std::size_t index) {
        if (space_[index].is_single()) return space_[index].low;
        CounterSource source(seed_ ^
                             stream_key("instead of a forbidden one " + std::to_string(turn)));
        return draw_uniform(space_[index], source, number);
    };
    if (std::optional<Point> other = find_allowed(space_, fixed, draw, true))
        return std::move(*other);
    return fixed.empty() && !example_.empty() ? spread_allowed(space_, fixed, example_, draw)
                                              : point;
}

}  // namespace tune::tuner
