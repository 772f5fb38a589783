#include "tuner/study/trial/population.h"

#include <algorithm>
#include <cmath>

namespace tune::tuner {

void Population::note(const Trial& trial) {
    if (!trial.origin) {
        first_ = std::max(first_, trial.number + 1);
        return;
    }
    // As the sampler sees it: a trial without a value is none to continue.
    if (trial.state != TrialState::kComplete || !trial.value || std::isnan(*trial.value)) return;
    std::uint64_t& head = heads_.try_emplace(trial.origin->member, trial.number).first->second;
    head = std::max(head, trial.number);
}

}  // namespace tune::tuner
