// Study: stopping when the command cannot work, and going on once it was mended.

#include <algorithm>

#include "tuner/sampler/pbt/pbt_options.h"
#include "tuner/study/study.h"

namespace tune::tuner {

/// Made from the trials where it is not there: after a restart, a resume or another setting.
FailureWatch& Study::failures() {
    if (failures_) return *failures_;
    failures_.emplace(config_.stop_after_failures);
    std::vector<const Trial*> ended;
    for (const Trial& trial : trials_)
        if (is_ended(trial.state) && !is_excused(trial)) ended.push_back(&trial);
    std::sort(ended.begin(), ended.end(),
              [](const Trial* a, const Trial* b) { return a->ended_at < b->ended_at; });
    for (const Trial* trial : ended) failures_->trial_ended(trial->state, trial->reason);
    return *failures_;
}

bool Study::is_excused(const Trial& trial) const {
    return is_ended(trial.state) &&
           std::any_of(excused_.begin(), excused_.end(),
                       [&trial](const ExcusedEnds& ends) { return ends.holds(trial); });
}

bool Study::stop_if_failing() {
    if (state_ != StudyState::kRunning) return false;
    auto why = failures().should_stop();
    if (!why) return false;
    set_state(StudyState::kStopped, *std::move(why));
    end_ = StudyEnd::kFailures;
    excused_.push_back({.stopped_at = log_position_});
    return true;
}

/// Where the last failure that counts ended; 0: none does.
std::int64_t Study::last_failure() const {
    std::int64_t last = 0;
    for (const Trial& trial : trials_)
        if (trial.state == TrialState::kFailed && !is_excused(trial))
            last = std::max(last, trial.ended_at);
    return last;
}

/// At the first success. Their points are not tried again: nobody says that anything was mended.
void Study::excuse_before_success() {
    const bool is_stopped = !excused_.empty() && excused_.back().until == 0;
    if (is_stopped || config_.stop_after_failures == 0 || success_count() != 1) return;
    const std::int64_t last = last_failure();
    if (last == 0) return;
    excused_.push_back({.stopped_at = last, .until = last});
    excused_count_ = 0;
    started_ms_ = 0;
    for (const Trial& trial : trials_) {
        if (is_excused(trial))
            ++excused_count_;
        else
            note_start(trial.start_ms);
    }
    watch_.reset();
    has_excused_ = true;
}

void Study::note_start(std::int64_t start_ms) {
    const bool is_first = started_ms_ == 0 || start_ms < started_ms_;
    if (start_ms != 0 && is_first) started_ms_ = start_ms;
}

std::vector<Trial*> Study::excuse_failures(std::int64_t now_ms) {
    std::vector<Trial*> again;
    const bool has_success = success_count() > 0;
    if (!excused_.empty() && excused_.back().until == 0) {
        excused_.back().until = log_position_;
    } else {
        if (has_success || config_.stop_after_failures == 0) return again;
        if (last_failure() == 0) return again;
        excused_.push_back({.stopped_at = log_position_, .until = log_position_});
    }
    std::vector<Point> points;
    const ExcusedEnds& now = excused_.back();
    const auto is_older = [&](const Trial& trial) {
        return std::any_of(excused_.begin(), excused_.end() - 1,
                           [&trial](const ExcusedEnds& ends) { return ends.holds(trial); });
    };
    for (const Trial& trial : trials_)
        if (is_ended(trial.state) && now.holds(trial) && !is_older(trial)) {
            ++excused_count_;
            points.push_back(trial.point);
        }
    watch_.reset();
    failures_.reset();
    if (!has_success && running_.empty()) started_ms_ = 0;  // its time begins anew
    // The members of a population are made up for by their sampler.
    if (config_.sampler.get_if<PbtOptions>() != nullptr) return again;
    forget_models();  // one that is being asked elsewhere was told of fewer trials
    for (const Point& point : points) {
        if (!check_enqueue()) break;                // a smaller budget than before
        if (!config_.space.check(point)) continue;  // the space has grown
        Trial& trial = add_trial(point, std::nullopt, ++log_position_, now_ms);
        note_enqueued(trial, point, {});
        again.push_back(&trial);
    }
    return again;
}

}  // namespace tune::tuner
