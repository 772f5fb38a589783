// In a finite space a model that is sure of its best point proposes it again and again. What a
// trial has had is replaced by a point that none has had, as near to the proposal as there is one.
//
//   turns 0 to 15    the proposal with one parameter changed: a neighbour on its grid, further ones
//                    ever more rarely, or another category
//   turns 16 to 31   with two parameters changed
//   turns 32 to 63   any point; from the start where the proposal comes from no model (random, qmc)
//   at last          the list of all points from a random place on, if the space can be listed
//
// Why it ends. The walk finds an unseen point if there is one, so a listed space is exhausted
// exactly when all of its points were seen. A space too large for a list has nearly always an
// unseen point within the first turns; should it not, the proposal is repeated.
//
// With "reuse" a repeat of a complete trial stays, since its value costs nothing, unless ten trials
// in a row were repeats: then the model has stopped and somebody must look elsewhere.
//
// Deterministic: every draw is a function of (seed, trial number, turn), so a replay of the journal
// proposes the same points.

#include "tuner/sampler/decorators/deduplicating_sampler.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace tune::tuner {
namespace {

/// Draws before the list of points is walked. The later ones are anywhere: with half of a space
/// seen, all of those hit a seen point once in 4 billion asks.
constexpr std::uint64_t kNearDraws = 32;
constexpr std::uint64_t kDrawsMax = 64;

/// One value of a parameter from another: a neighbour on the grid, further ones ever more rarely,
/// or another category.
double changed(const Parameter& parameter, double value, double uniform) {
    const auto count = static_cast<double>(parameter.count());
    if (parameter.kind == Kind::kChoice) {
        const double other = std::min(std::floor(uniform * (count - 1)), count - 2);
        return other >= value ? other + 1 : other;
    }
    const bool is_up = uniform < 0.5;
    const double rest = is_up ? 2 * uniform : 2 * uniform - 1;
    const double steps = 1 + std::floor(-std::log2(1 - rest));
    const double there = parameter.snap(value + (is_up ? steps : -steps) * parameter.step);
    // At a bound the other way is the only one.
    return there != value ? there : parameter.snap(value + (is_up ? -1 : 1) * parameter.step);
}

}  // namespace

DeduplicatingSampler::DeduplicatingSampler(const Space& space,
                                           std::optional<std::vector<Point>> points,
                                           std::unique_ptr<Sampler> inner,
                                           std::shared_ptr<SeenPoints> seen, std::uint64_t seed,
                                           Repeats repeats)
    : space_(space),
      groups_(groups_of(space)),
      points_(std::move(points)),
      inner_(std::move(inner)),
      seen_(std::move(seen)),
      seed_(seed),
      repeats_(repeats) {}

Result<void> DeduplicatingSampler::observe(const Observation& observation) {
    TUNE_TRY_VOID(inner_->observe(observation));
    if (observation.point.size() != space_.size()) return {};
    const auto [place, is_new] = seen_->try_emplace(observation.point, Seen{observation.number});
    Seen& seen = place->second;
    seen.first = std::min(seen.first, observation.number);
    seen.is_complete = seen.is_complete || observation.state == Observation::State::kComplete;
    if (repeats_.are_reused) by_number_[observation.number] = &seen;
    return {};
}

Point DeduplicatingSampler::suggest(std::uint64_t number, const Point& fixed) {
    Point point = inner_->suggest(number, fixed);
    const auto seen = seen_->find(point);
    if (!fixed.empty() || seen == seen_->end() || may_repeat(number, seen->second)) return point;
    if (std::optional<Point> other = unseen(number, point)) return std::move(*other);
    return point;
}

bool DeduplicatingSampler::may_repeat(std::uint64_t number, const Seen& seen) const {
    if (!repeats_.are_reused || !seen.is_complete) return false;
    for (std::uint64_t back = 1; back <= std::min(kRepeatsMax, number); ++back) {
        const auto before = by_number_.find(number - back);
        const bool is_repeat = before != by_number_.end() && before->second->first < number - back;
        if (!is_repeat) return true;
    }
    return number < kRepeatsMax;
}

/// A function of (seed, number, what is seen), so that a replay draws the same.
std::optional<Point> DeduplicatingSampler::unseen(std::uint64_t number, const Point& wanted) const {
    for (std::uint64_t turn = repeats_.is_near ? 0 : kNearDraws; turn < kDrawsMax; ++turn) {
        Point point = drawn(number, turn, wanted);
        if (!seen_->contains(point) && !space_.is_forbidden(point)) return point;
    }
    if (!points_) return std::nullopt;
    double uniform = 0;
    CounterSource(seed_).fill(number, stream_key("walk instead"), {&uniform, 1});
    const std::size_t count = points_->size();
    const auto first = static_cast<std::size_t>(uniform * static_cast<double>(count));
    for (std::size_t i = 0; i < count; ++i) {
        const Point& point = (*points_)[(first + i) % count];
        if (!seen_->contains(point)) return point;
    }
    return std::nullopt;
}

/// In the first turns the wanted point with one parameter changed, then with two; at last any.
Point DeduplicatingSampler::drawn(std::uint64_t number, std::uint64_t turn,
                                  const Point& wanted) const {
    CounterSource source(seed_ ^ stream_key("draw instead " + std::to_string(turn)));
    std::vector<std::size_t> free;
    for (std::size_t i = 0; i < space_.size(); ++i)
        if (is_active(wanted[i]) && !space_[i].is_single()) free.push_back(i);
    Point start = space_.empty_point();
    if (turn < kNearDraws && !free.empty()) {
        start = wanted;
        double uniforms[4];
        source.fill(number, stream_key("what to change"), uniforms);
        for (std::size_t change = 0; change < (turn < kNearDraws / 2 ? 1u : 2u); ++change) {
            const double at = uniforms[2 * change] * static_cast<double>(free.size());
            const std::size_t index = free[static_cast<std::size_t>(at)];
            start[index] = changed(space_[index], wanted[index], uniforms[2 * change + 1]);
        }
    }
    return compose_from(space_, groups_, {}, start, source, number);
}

bool is_finite_space(const Space& space) {
    return std::all_of(space.parameters().begin(), space.parameters().end(),
                       [](const Parameter& parameter) { return parameter.count() > 0; });
}

}  // namespace tune::tuner
