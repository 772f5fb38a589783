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
                                 std::unique_ptr<Sampler> inner, std::uint64_t seed, bool reuses)
    : space_(space),
      groups_(groups_of(space)),
      points_(std::move(points)),
      inner_(std::move(inner)),
      seed_(seed),
      reuses_(reuses) {}

Result<void> DistinctSampler::observe(const Observation& observation) {
    TUNE_TRY_VOID(inner_->observe(observation));
    if (observation.point.size() != space_.size()) return {};
    const auto [place, is_new] = seen_.try_emplace(observation.point, Seen{observation.number});
    Seen& seen = place->second;
    seen.first = std::min(seen.first, observation.number);
    seen.is_complete = seen.is_complete || observation.state == Observation::State::kComplete;
    if (reuses_) by_number_[observation.number] = &seen;
    return {};
}

Point DistinctSampler::suggest(std::uint64_t number, const Point& fixed) {
    Point point = inner_->suggest(number, fixed);
    const auto seen = seen_.find(point);
    if (!fixed.empty() || seen == seen_.end() || may_repeat(number, seen->second)) return point;
    if (std::optional<Point> other = unseen(number)) return std::move(*other);
    return point;
}

bool DistinctSampler::may_repeat(std::uint64_t number, const Seen& seen) const {
    if (!reuses_ || !seen.is_complete) return false;
    for (std::uint64_t back = 1; back <= std::min(kRepeatsMax, number); ++back) {
        const auto before = by_number_.find(number - back);
        const bool is_repeat = before != by_number_.end() && before->second->first < number - back;
        if (!is_repeat) return true;
    }
    return number < kRepeatsMax;
}

/// A function of (seed, number, what is seen), so that a replay draws the same.
std::optional<Point> DistinctSampler::unseen(std::uint64_t number) const {
    for (std::uint64_t draw = 0; draw < kDrawsMax; ++draw) {
        CounterSource source(seed_ ^ stream_key("draw instead " + std::to_string(draw)));
        Point point = compose_point(space_, groups_, {}, [&](const Group& group, Point& partial) {
            for (const std::size_t index : group.members)
                partial[index] = draw_uniform(space_[index], source, number);
        });
        if (!seen_.contains(point) && !space_.is_forbidden(point)) return point;
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
