#include "tuner/sampler/distinct_sampler.h"

#include <algorithm>
#include <utility>

namespace tune::tuner {
namespace {

/// Random draws before the list of points is walked; with half of a space seen, all of them hit a
/// seen point once in 4 billion asks.
constexpr std::uint64_t kDrawsMax = 32;

}  // namespace

DistinctSampler::DistinctSampler(const Space& space, std::optional<std::vector<Point>> points,
                                 std::unique_ptr<Sampler> inner, std::uint64_t seed)
    : space_(space),
      groups_(groups_of(space)),
      points_(std::move(points)),
      inner_(std::move(inner)),
      seed_(seed) {}

Result<void> DistinctSampler::observe(const Observation& observation) {
    TUNE_TRY_VOID(inner_->observe(observation));
    if (observation.point.size() == space_.size()) seen_.insert(observation.point);
    return {};
}

Point DistinctSampler::suggest(std::uint64_t number, const Point& fixed) {
    Point point = inner_->suggest(number, fixed);
    if (!fixed.empty() || !seen_.contains(point)) return point;
    if (std::optional<Point> other = unseen(number)) return std::move(*other);
    return point;
}

/// A function of (seed, number, what is seen), so that a replay draws the same.
std::optional<Point> DistinctSampler::unseen(std::uint64_t number) const {
    for (std::uint64_t draw = 0; draw < kDrawsMax; ++draw) {
        CounterSource source(seed_ ^ stream_key("draw instead " + std::to_string(draw)));
        Point point = compose_point(
            space_, groups_, number, space_.empty_point(), [&](const Group& group, Point& partial) {
                for (const std::size_t index : group.members)
                    partial[index] = draw_uniform(space_[index], source, number);
            });
        if (!seen_.contains(point)) return point;
    }
    if (!points_) return std::nullopt;
    double uniform = 0;
    CounterSource(seed_).fill(number, stream_key("walk instead"), {&uniform, 1});
    const std::size_t count = points_->size();
    const auto first = static_cast<std::size_t>(uniform * static_cast<double>(count));
    for (std::size_t i = 0; i < count; ++i) {
        const Point& point = (*points_)[(first + i) % count];
        if (!seen_.contains(point)) return point;
    }
    return std::nullopt;
}

bool is_finite_space(const Space& space) {
    return std::all_of(space.parameters().begin(), space.parameters().end(),
                       [](const Parameter& parameter) { return parameter.count() > 0; });
}

}  // namespace tune::tuner
