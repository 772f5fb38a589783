#include "tuner/sampler/decorators/initial_points_sampler.h"

#include <utility>

namespace tune::tuner {
namespace {

bool has(const Point& point, const Point& wanted) {
    bool has_some = false;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (!is_active(wanted[i]) || !is_active(point[i])) continue;
        if (wanted[i] != point[i]) return false;
        has_some = true;
    }
    return has_some;
}

}  // namespace

InitialPointsSampler::InitialPointsSampler(const Space& space, std::unique_ptr<Sampler> inner)
    : space_(space),
      inner_(std::move(inner)),
      points_(space.first_points()),
      had_by_(points_.size()) {}

Result<void> InitialPointsSampler::observe(const Observation& observation) {
    TUNE_TRY_VOID(inner_->observe(observation));
    if (observation.point.size() != space_.size()) return {};
    for (std::size_t i = 0; i < points_.size(); ++i) {
        if (has(observation.point, points_[i]))
            had_by_[i].insert(observation.number);
        else
            had_by_[i].erase(observation.number);
    }
    return {};
}

Point InitialPointsSampler::suggest(std::uint64_t number, const Point& fixed) {
    if (!fixed.empty()) return inner_->suggest(number, fixed);
    for (std::size_t i = 0; i < points_.size(); ++i) {
        const bool is_had =
            !had_by_[i].empty() && !(had_by_[i].size() == 1 && *had_by_[i].begin() == number);
        if (is_had) continue;
        Point point = inner_->suggest(number, points_[i]);
        if (!space_.is_forbidden(point)) return point;
    }
    return inner_->suggest(number, fixed);
}

}  // namespace tune::tuner
