// A model that suggests here observes each trial as it is added and as it ends. One that suggests
// elsewhere is not to be touched meanwhile: what it misses is a count of the first trials that it
// knows and a list of those of them that have ended since, and the next piece of work brings both.
// A log position is taken when a point is asked for, not when it comes, so that the trial's
// `asked_at` says what the model had seen.

#include "tuner/study/suggestion_desk.h"

#include <algorithm>

#include "base/check.h"
#include "tuner/study/journal/warm_start.h"

namespace tune::tuner {

// --- made here -----------------------------------------------------------------------------------

Sampler& SuggestionDesk::model() {
    TUNE_CHECK(!is_elsewhere_, "suggestions of this study are made elsewhere");
    warm_up(trials_.size());
    return *model_;
}

const NextPoint& SuggestionDesk::next() {
    if (next_at_ == log_.position()) return next_;
    next_.point = model().suggest(trials_.size());
    next_.origin = model().origin(trials_.size());
    next_at_ = log_.position();
    return next_;
}

NextPoint SuggestionDesk::with(const Point& fixed) {
    NextPoint made;
    made.point = model().suggest(trials_.size(), fixed);
    made.origin = model().origin(trials_.size());
    return made;
}

bool SuggestionDesk::warm_up(std::size_t trials_max) {
    if (!model_) {
        const StudyConfig& config = definition_.config();
        model_ = definition_.new_sampler(config.space, config.sampler);
        known_ = 0;
    }
    const std::size_t end = std::min(trials_.size(), known_ + trials_max);
    while (known_ < end) observe(trials_[known_++]);
    return known_ == trials_.size();
}

void SuggestionDesk::observe(const Trial& trial) {
    const Result<void> observed = model_->observe(observation(trial));
    TUNE_CHECK(observed.has_value(), "points of a study lie in its space");
}

// --- made elsewhere ------------------------------------------------------------------------------

void SuggestionDesk::suggest_elsewhere() {
    is_elsewhere_ = true;
    changed_.clear();
}

SuggestionWork SuggestionDesk::begin(const SuggestionWish& wish, std::size_t news_max) {
    TUNE_CHECK(is_elsewhere_ && !work_, "a study's model does one thing at a time");
    SuggestionWork work;
    work.wish = wish;
    work.sampler = model_;
    work.model_version = model_version_;
    if (!model_)
        work.make = [config = definition_.config(), seed = definition_.identity().seed] {
            return std::shared_ptr<Sampler>(make_sampler(config.space, config.sampler,
                                                         objectives_of(config), seed,
                                                         warm_history(config, config.space)));
        };
    for (; !changed_.empty() && work.news.size() < news_max; changed_.pop_back())
        work.news.push_back(observation(trials_[changed_.back()]));
    for (; known_ < trials_.size() && work.news.size() < news_max; ++known_)
        work.news.push_back(observation(trials_[known_]));
    work.is_up_to_date = changed_.empty() && known_ == trials_.size();
    work.may_be_exhausted = may_be_used_up();
    work.number = trials_.size();
    const bool is_asked = work.is_up_to_date && wish.what != SuggestionWish::For::kLook;
    work.position = is_asked ? log_.next() : log_.position();
    work_ = is_asked ? Work::kPoint : Work::kOther;
    return work;
}

bool SuggestionDesk::end(const SuggestionWork& work, const Suggestion& made) {
    work_.reset();
    if (work.model_version != model_version_) return false;
    model_ = made.sampler;
    if (!work.is_up_to_date) return true;
    exhausted_at_ = work.position;
    is_exhausted_ = made.is_exhausted;
    return true;
}

bool SuggestionDesk::needs_look() const {
    const bool is_idle = trials_.running().empty() && trials_.queued().empty();
    return is_elsewhere_ && is_idle && !work_ && exhausted_at_ != log_.position() &&
           may_be_used_up();
}

// --- both ----------------------------------------------------------------------------------------

bool SuggestionDesk::may_be_used_up() const {
    const StudyConfig& config = definition_.config();
    return !trials_.empty() && can_be_exhausted(config.space, config.sampler);
}

bool SuggestionDesk::is_space_used() {
    if (!may_be_used_up()) return false;
    if (is_elsewhere_) return exhausted_at_ == log_.position() && is_exhausted_;
    return model().is_exhausted();
}

void SuggestionDesk::trial_added() {
    if (model_ && !is_elsewhere_) warm_up(1);
}

void SuggestionDesk::trial_ended(const Trial& trial) {
    // Trials that it does not know yet reach it later, as they are then.
    if (trial.number >= known_) return;
    if (is_elsewhere_) return changed_.push_back(trial.number);
    if (model_) observe(trial);
}

void SuggestionDesk::forget() {
    model_.reset();
    known_ = 0;
    changed_.clear();
    ++model_version_;
    exhausted_at_ = -1;
    next_at_ = -1;
}

}  // namespace tune::tuner
