// Suggestions that are made outside the study: both halves of the study's side, and the work.

#include "tuner/study/suggestion.h"

#include "tuner/study/journal/warm_start.h"
#include "tuner/study/study.h"

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

void Study::suggest_elsewhere() {
    suggests_elsewhere_ = true;
    changed_.clear();
}

SuggestionWork Study::begin_suggestion(const SuggestionWish& wish, std::size_t news_max) {
    TUNE_CHECK(suggests_elsewhere_ && !work_, "a study's model does one thing at a time");
    SuggestionWork work;
    work.wish = wish;
    work.sampler = sampler_;
    work.model_version = model_version_;
    if (!sampler_)
        work.make = [config = config_, seed = identity_.seed] {
            return std::shared_ptr<Sampler>(make_sampler(config.space, config.sampler,
                                                         objectives_of(config), seed,
                                                         warm_history(config, config.space)));
        };
    for (; !changed_.empty() && work.news.size() < news_max; changed_.pop_back())
        work.news.push_back(observation_of(trials_[changed_.back()]));
    for (; sampler_knows_ < trials_.size() && work.news.size() < news_max; ++sampler_knows_)
        work.news.push_back(observation_of(trials_[sampler_knows_]));
    work.is_up_to_date = changed_.empty() && sampler_knows_ == trials_.size();
    work.may_be_exhausted = !trials_.empty() && can_be_exhausted(config_.space, config_.sampler);
    work.number = trials_.size();
    const bool is_asked = work.is_up_to_date && wish.what != SuggestionWish::For::kLook;
    work.position = is_asked ? ++log_position_ : log_position_;
    work_ = is_asked ? Work::kPoint : Work::kOther;
    return work;
}

bool Study::end_suggestion(const SuggestionWork& work, const Suggestion& made) {
    work_.reset();
    if (work.model_version != model_version_) return false;
    sampler_ = made.sampler;
    if (!work.is_up_to_date) return true;
    exhausted_at_ = work.position;
    is_exhausted_ = made.is_exhausted;
    return true;
}

Result<Trial*> Study::add_suggested(const SuggestionWork& work, const Suggestion& made,
                                    std::int64_t now_ms) {
    TUNE_CHECK(made.point && work.number == trials_.size(), "trials are added in their order");
    if (work.wish.what == SuggestionWish::For::kGiven)
        TUNE_TRY_VOID(config_.space.check(*made.point));
    return &add_trial(*made.point, made.origin, work.position, now_ms);
}

bool Study::needs_look() {
    return suggests_elsewhere_ && state_ == StudyState::kRunning && running_.empty() &&
           queued_.empty() && !trials_.empty() && !work_ && exhausted_at_ != log_position_ &&
           can_be_exhausted(config_.space, config_.sampler);
}

}  // namespace tune::tuner
