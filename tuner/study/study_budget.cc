// Study: what ends it, and trials that need not run.
//
// Paid costs and the streak without progress are kept by BudgetWatch as trials end; after a restart
// or a changed budget it is built again from the trials, in the order in which they ended, so it is
// the same as if nothing had happened. Running trials count with what they have cost so far when
// the question is whether the budget is used up, and with what they are expected to cost when it is
// whether one more may start. With a budget of cost trials start one at a time, since each start
// changes that answer.

#include <algorithm>
#include <cmath>

#include "base/text/number_text.h"
#include "tuner/sampler/pbt/pbt_options.h"
#include "tuner/study/study.h"

namespace tune::tuner {

// --- budgets -------------------------------------------------------------------------------------

/// Made from the trials where it is not there: after a restart, or when the budget was changed.
BudgetWatch& Study::watch() {
    if (watch_) return *watch_;
    BudgetConfig budget = config_.budget;
    budget.gpus_per_trial = gpus_of_process(config_) * processes_of(config_.resources);
    watch_.emplace(std::move(budget), objectives_of(config_).goals,
                   std::max(config_.resources.pool, 1));
    std::vector<const Trial*> ended;
    for (const Trial& trial : trials_) {
        if (is_excused(trial)) continue;
        watch_->pay(trial.cost);
        if (is_ended(trial.state)) ended.push_back(&trial);
    }
    std::sort(ended.begin(), ended.end(),
              [](const Trial* a, const Trial* b) { return a->ended_at < b->ended_at; });
    for (const Trial* trial : ended)
        watch_->trial_ended(*trial, violation_of(*trial, config_) <= 0);
    return *watch_;
}

std::vector<double> Study::running_costs(std::int64_t now_ms) const {
    std::vector<double> costs;
    if (!config_.budget.cost) return costs;
    for (const std::uint64_t number : running_)
        costs.push_back(watch_->running_cost(trials_[number], now_ms));
    return costs;
}

double Study::paid() const {
    if (watch_) return watch_->paid();
    double paid = 0;
    for (const Trial& trial : trials_)
        if (!is_excused(trial)) paid += trial.cost;
    return paid;
}

bool Study::is_out_of_time(std::int64_t now_ms) const {
    return config_.budget.time_ms && started_ms_ != 0 &&
           now_ms >= started_ms_ + *config_.budget.time_ms;
}

std::optional<BudgetWatch::Over> Study::over(std::int64_t now_ms) {
    double running_cost = 0;
    BudgetWatch& budget = watch();
    for (const double cost : running_costs(now_ms)) running_cost += cost;
    if (auto used = budget.over(running_cost)) return used;
    if (!is_out_of_time(now_ms)) return std::nullopt;
    return BudgetWatch::Over{
        StudyEnd::kTime,
        "the time budget of " + duration_text(*config_.budget.time_ms) + " is over"};
}

bool Study::lacks_room(std::int64_t now_ms) {
    if (!config_.budget.cost) return false;
    const BudgetWatch& budget = watch();
    double expected = 0;
    for (const std::uint64_t number : running_)
        expected += budget.expected_cost(trials_[number], now_ms);
    return !budget.has_room(expected);
}

std::size_t Study::startable(std::int64_t now_ms, std::size_t most) {
    if (!may_start(now_ms)) return 0;
    const BudgetConfig& budget = config_.budget;
    if (budget.parallel)
        most = std::min(most, static_cast<std::size_t>(*budget.parallel) - running_.size());
    if (budget.cost) return std::min<std::size_t>(most, 1);
    std::size_t count = queued_.size();
    if (can_be_exhausted(config_.space, config_.sampler)) {
        count = std::max<std::size_t>(count, 1);
    } else if (budget.trials) {
        const std::size_t made = trials_.size() - excused_count_;
        count += *budget.trials > made ? *budget.trials - made : 0;
    } else {
        count = most;
    }
    return std::min(count, most);
}

std::optional<std::string> Study::exceeds_budget(const Trial& trial) {
    if (!watch().exceeds_budget(trial)) return std::nullopt;
    return "it cost more than " + number_text(*config_.budget.cost->per_trial) + " of '" +
           config_.budget.cost->metric + "', the bound of a trial";
}

std::optional<std::int64_t> Study::deadline_ms(std::int64_t now_ms) {
    std::optional<std::int64_t> deadline;
    if (config_.budget.time_ms && started_ms_ != 0)
        deadline = started_ms_ + *config_.budget.time_ms;
    if (!config_.budget.cost) return deadline;
    double running_cost = 0;
    BudgetWatch& budget = watch();
    for (const double cost : running_costs(now_ms)) running_cost += cost;
    if (const auto left_ms = budget.left_ms(running_cost, running_.size()))
        deadline = std::min(deadline.value_or(now_ms + *left_ms), now_ms + *left_ms);
    return deadline;
}

void Study::complete_with(StudyEnd end, std::string note) {
    set_state(StudyState::kCompleted, std::move(note));
    end_ = end;
}

bool Study::wants_registration() const {
    if (config_.register_as.empty() || state_ != StudyState::kCompleted || best() == nullptr)
        return false;
    return !registration_ || registration_->trial != best()->number ||
           registration_->name != config_.register_as;
}

bool Study::complete_if_done(std::int64_t now_ms) {
    if (state_ != StudyState::kRunning || !running_.empty()) return false;
    if (work_ == Work::kPoint) return false;  // a trial may be on its way
    const auto used = over(now_ms);
    // A target that is reached with the last trial is what the user wants to hear of.
    if (used && used->why == StudyEnd::kTarget) {
        complete_with(used->why, used->note);
        return true;
    }
    if (queued_.empty() && has_used_trials()) {
        complete_with(StudyEnd::kTrials, {});
        return true;
    }
    if (queued_.empty() && is_space_used()) {
        if (const auto* pbt = config_.sampler.get_if<PbtOptions>())
            complete_with(StudyEnd::kSteps, "every member of the population has trained to step " +
                                                std::to_string(pbt->max));
        else
            complete_with(StudyEnd::kSpace, "every point of the space has been tried");
        return true;
    }
    if (used) {
        complete_with(used->why, used->note);
        return true;
    }
    if (!lacks_room(now_ms)) return false;
    complete_with(StudyEnd::kCost, "the remaining cost budget is less than the cost of a trial");
    return true;
}

// --- trials that need not run --------------------------------------------------------------------

/// Asked once for each state of the history: reuse_known looks at it before start takes it.
const Point& Study::next_point() {
    if (next_at_ == log_position_) return next_point_;
    next_point_ = sampler().suggest(trials_.size());
    next_origin_ = sampler().origin(trials_.size());
    next_at_ = log_position_;
    return next_point_;
}

std::vector<Trial*> Study::reuse_known(std::int64_t now_ms) {
    std::vector<Trial*> reused;
    if (config_.sampler.duplicates != Duplicates::kReuse ||
        !can_be_exhausted(config_.space, config_.sampler))
        return reused;
    if (!known_) {
        known_.emplace();
        for (const Trial& trial : trials_) known_->add(trial);
    }
    while (reused.size() < kReusedMax && may_start(now_ms)) {
        Trial* waiting = queued_.empty() ? nullptr : &trials_[*queued_.begin()];
        if (waiting != nullptr && waiting->attempt > 0) break;  // it is being tried already
        if (waiting == nullptr && suggests_elsewhere_) break;   // it is looked at when it waits
        const auto known = known_->find(waiting != nullptr ? waiting->point : next_point());
        if (!known) break;
        Trial& trial = waiting != nullptr ? *waiting : add_next(now_ms);
        const Trial& from = trials_[*known];
        trial.reused_from = from.number;
        trial.start_ms = now_ms;
        if (started_ms_ == 0) started_ms_ = now_ms;
        finish(trial,
               {.state = TrialState::kComplete,
                .value = from.value,
                .reason = "not run: trial " + std::to_string(from.number) + " had the same point",
                .now_ms = now_ms,
                .more_values = from.more_values,
                .constraint_values = from.constraint_values});
        reused.push_back(&trial);
    }
    return reused;
}

}  // namespace tune::tuner
