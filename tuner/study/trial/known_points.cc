#include "tuner/study/trial/known_points.h"

namespace tune::tuner {

void KnownPoints::add(const Trial& trial) {
    if (trial.state != TrialState::kComplete || !trial.value) return;
    trials_.emplace(trial.point, trial.number);
}

std::optional<std::uint64_t> KnownPoints::find(const Point& point) const {
    const auto found = trials_.find(point);
    if (found == trials_.end()) return std::nullopt;
    return found->second;
}

}  // namespace tune::tuner
