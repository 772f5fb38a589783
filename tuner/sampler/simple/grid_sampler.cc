#include "tuner/sampler/simple/grid_sampler.h"

#include <algorithm>

#include "tuner/sampler/simple/random_sampler.h"
#include "tuner/sampler/uniform.h"

namespace tune::tuner {
namespace {

/// Fisher and Yates, with numbers that depend on the seed only.
void shuffle(std::vector<Point>& points, std::uint64_t seed) {
    std::vector<double> uniforms(points.size());
    CounterSource(seed).fill(0, stream_key("order of the grid"), uniforms);
    for (std::size_t left = points.size(); left > 1; --left) {
        const auto at = static_cast<std::size_t>(uniforms[left - 1] * static_cast<double>(left));
        std::swap(points[left - 1], points[std::min(at, left - 1)]);
    }
}

bool agrees(const Point& point, const Point& given) {
    for (std::size_t i = 0; i < given.size(); ++i)
        if (is_active(given[i]) && is_active(point[i]) && given[i] != point[i]) return false;
    return true;
}

}  // namespace

GridSampler::GridSampler(const Space& space, std::vector<Point> points, std::uint64_t seed)
    : space_(space),
      seed_(seed),
      points_(std::move(points)),
      grid_(points_.begin(), points_.end()),
      unseen_(points_.size()) {
    shuffle(points_, seed);
}

Result<void> GridSampler::observe(const Observation& observation) {
    if (observation.point.size() != space_.size()) return {};  // gone, and nothing known of it
    if (observation.state != Observation::State::kGone)
        TUNE_TRY_VOID(space_.check(observation.point));
    const bool is_new = seen_.insert(observation.point).second;
    if (is_new && grid_.contains(observation.point)) --unseen_;
    return {};
}

Point GridSampler::suggest(std::uint64_t number, const Point& fixed) {
    while (cursor_ < points_.size() && seen_.contains(points_[cursor_])) ++cursor_;
    for (std::size_t i = cursor_; i < points_.size(); ++i)
        if (!seen_.contains(points_[i]) && agrees(points_[i], fixed)) return points_[i];
    // Values beside the grid, or all seen: what is not given is drawn.
    RandomSampler random(space_, std::make_unique<CounterSource>(seed_));
    return random.suggest(number, fixed);
}

}  // namespace tune::tuner
