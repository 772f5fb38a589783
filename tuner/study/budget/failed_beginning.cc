#include "tuner/study/budget/failed_beginning.h"

#include <algorithm>

namespace tune::tuner {
namespace {

bool is_success(const Trial& trial) {
    return trial.state == TrialState::kComplete || trial.state == TrialState::kPruned;
}

}  // namespace

bool FailedBeginning::excuses(const Trial& trial) const {
    return is_ended(trial.state) &&
           std::any_of(ends_.begin(), ends_.end(),
                       [&trial](const ExcusedEnds& ends) { return ends.holds(trial); });
}

std::optional<std::string> FailedBeginning::should_stop() {
    if (watch_) return watch_->should_stop();
    watch_.emplace(config_.stop_after_failures);
    std::vector<const Trial*> ended;
    for (const Trial& trial : trials_)
        if (is_ended(trial.state) && !excuses(trial)) ended.push_back(&trial);
    std::sort(ended.begin(), ended.end(),
              [](const Trial* a, const Trial* b) { return a->ended_at < b->ended_at; });
    for (const Trial* trial : ended) watch_->trial_ended(trial->state, trial->reason);
    return watch_->should_stop();
}

void FailedBeginning::stop() {
    ends_.push_back({.stopped_at = log_.position()});
}

bool FailedBeginning::trial_ended(const Trial& trial) {
    if (watch_) watch_->trial_ended(trial.state, trial.reason);
    return is_success(trial) && excuse_before_success();
}

/// Where the last failure that counts ended; 0: none does.
std::int64_t FailedBeginning::last_failure() const {
    std::int64_t last = 0;
    for (const Trial& trial : trials_)
        if (trial.state == TrialState::kFailed && !excuses(trial))
            last = std::max(last, trial.ended_at);
    return last;
}

bool FailedBeginning::excuse_before_success() {
    if (is_stopped() || config_.stop_after_failures == 0 || trials_.success_count() != 1)
        return false;
    const std::int64_t last = last_failure();
    if (last == 0) return false;
    ends_.push_back({.stopped_at = last, .until = last});
    count_ = static_cast<std::size_t>(std::count_if(
        trials_.begin(), trials_.end(), [this](const Trial& trial) { return excuses(trial); }));
    has_excused_ = true;
    return true;
}

std::optional<std::vector<Point>> FailedBeginning::excuse() {
    if (is_stopped()) {
        ends_.back().until = log_.position();
    } else {
        const bool has_success = trials_.success_count() > 0;
        if (has_success || config_.stop_after_failures == 0) return std::nullopt;
        if (last_failure() == 0) return std::nullopt;
        ends_.push_back({.stopped_at = log_.position(), .until = log_.position()});
    }
    std::vector<Point> points;
    const ExcusedEnds& now = ends_.back();
    const auto is_older = [&](const Trial& trial) {
        return std::any_of(ends_.begin(), ends_.end() - 1,
                           [&trial](const ExcusedEnds& ends) { return ends.holds(trial); });
    };
    for (const Trial& trial : trials_)
        if (is_ended(trial.state) && now.holds(trial) && !is_older(trial)) {
            ++count_;
            points.push_back(trial.point);
        }
    forget();
    return points;
}

void FailedBeginning::restored(const Trial& trial) {
    if (excuses(trial)) ++count_;
    forget();
}

}  // namespace tune::tuner
