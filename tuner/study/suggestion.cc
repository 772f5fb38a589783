#include "tuner/study/suggestion.h"

#include "base/check.h"

namespace tune::tuner {

Suggestion suggest(const SuggestionWork& work) {
    using For = SuggestionWish::For;
    Suggestion made;
    made.sampler = work.sampler ? work.sampler : work.make();
    for (const Observation& news : work.news) {
        const Result<void> observed = made.sampler->observe(news);
        TUNE_CHECK(observed.has_value(), "points of a study lie in its space");
    }
    if (!work.is_up_to_date) return made;
    made.is_exhausted = work.may_be_exhausted && made.sampler->is_exhausted();
    const bool is_in_vain = work.wish.what == For::kTrial && made.is_exhausted;
    if (work.wish.what == For::kLook || is_in_vain) return made;
    made.point = made.sampler->suggest(work.number, work.wish.fixed);
    made.origin = made.sampler->origin(work.number);
    return made;
}

Observation observation_of(const Trial& trial, const StudyConfig& config) {
    Observation seen;
    seen.number = trial.number;
    seen.point = trial.point;
    seen.origin = trial.origin;
    switch (trial.state) {
        case TrialState::kQueued:
        case TrialState::kRunning: break;
        case TrialState::kComplete:
            seen.state = Observation::State::kComplete;
            seen.value = trial.value.value_or(0);
            seen.more_values = trial.more_values;
            seen.violation = violation_of(trial, config);
            seen.violations = violations_of(config.constraints, trial.constraint_values);
            break;
        case TrialState::kPruned:
            seen.state = Observation::State::kPruned;
            seen.last_step = trial.last_step;
            seen.last_value = trial.last_value;
            break;
        case TrialState::kFailed:
        case TrialState::kCancelled: seen.state = Observation::State::kGone; break;
    }
    return seen;
}

}  // namespace tune::tuner
