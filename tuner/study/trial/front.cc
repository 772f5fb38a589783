#include "tuner/study/trial/front.h"

#include <algorithm>
#include <cmath>

#include "tuner/study/trial/trial_results.h"

namespace tune::tuner {

void Front::consider(const Trial& trial) {
    if (trial.state != TrialState::kComplete || !trial.value || std::isnan(*trial.value)) return;
    if (violation_of(trial, config_) > 0) return;
    const bool is_single = config_.more_metrics.empty();
    for (const std::uint64_t number : numbers_) {
        const Trial& other = trials_[number];
        const bool is_later_equal =
            is_single && *trial.value == *other.value && number < trial.number;
        if (is_later_equal || dominates(other, trial, config_)) return;
    }
    std::erase_if(numbers_, [&](std::uint64_t number) {
        return is_single || dominates(trial, trials_[number], config_);
    });
    numbers_.insert(std::lower_bound(numbers_.begin(), numbers_.end(), trial.number), trial.number);
    ++version_;
}

const Trial* Front::best() const {
    return empty() || !config_.more_metrics.empty() ? nullptr : &trials_[numbers_.front()];
}

std::vector<const Trial*> Front::trials() const {
    std::vector<const Trial*> trials;
    for (const std::uint64_t number : numbers_) trials.push_back(&trials_[number]);
    return trials;
}

}  // namespace tune::tuner
