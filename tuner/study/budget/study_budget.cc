// Costs that were paid and the streak without progress are kept by BudgetWatch as trials end; after
// a restart or a change it is built again from the trials, first what each paid, by number, then
// the ends in their order. Trials that are excused are left out both times, so the sums are the
// same.

#include "tuner/study/budget/study_budget.h"

#include <algorithm>

#include "base/text/counted.h"
#include "base/text/number_text.h"

namespace tune::tuner {

BudgetWatch& StudyBudget::watch() const {
    if (watch_) return *watch_;
    const StudyConfig& config = definition_.config();
    BudgetConfig budget = config.budget;
    budget.gpus_per_trial = gpus_of_process(config) * processes_of(config.resources);
    watch_.emplace(std::move(budget), objectives_of(config).goals,
                   std::max(config.resources.pool, 1));
    std::vector<const Trial*> ended;
    for (const Trial& trial : trials_) {
        if (beginning_.excuses(trial)) continue;
        watch_->pay(trial.cost);
        if (is_ended(trial.state)) ended.push_back(&trial);
    }
    std::sort(ended.begin(), ended.end(),
              [](const Trial* a, const Trial* b) { return a->ended_at < b->ended_at; });
    for (const Trial* trial : ended) watch_->trial_ended(*trial, violation_of(*trial, config) <= 0);
    return *watch_;
}

double StudyBudget::running_cost(std::int64_t now_ms) const {
    double cost = 0;
    if (!limits().cost) return cost;
    const BudgetWatch& budget = watch();
    for (const std::uint64_t number : trials_.running())
        cost += budget.running_cost(trials_[number], now_ms);
    return cost;
}

bool StudyBudget::is_out_of_time(std::int64_t now_ms) const {
    return limits().time_ms && started_ms_ != 0 && now_ms >= started_ms_ + *limits().time_ms;
}

std::optional<BudgetWatch::Over> StudyBudget::over(std::int64_t now_ms) const {
    if (auto used = watch().over(running_cost(now_ms))) return used;
    if (!is_out_of_time(now_ms)) return std::nullopt;
    return BudgetWatch::Over{StudyEnd::kTime,
                             "the time budget of " + duration_text(*limits().time_ms) + " is over"};
}

bool StudyBudget::lacks_room(std::int64_t now_ms) const {
    if (!limits().cost) return false;
    const BudgetWatch& budget = watch();
    double expected = 0;
    for (const std::uint64_t number : trials_.running())
        expected += budget.expected_cost(trials_[number], now_ms);
    return !budget.has_room(expected);
}

std::optional<std::size_t> StudyBudget::trials_left() const {
    if (!limits().trials) return std::nullopt;
    const std::size_t made = trials_.size() - beginning_.count();
    return *limits().trials > made ? *limits().trials - made : 0;
}

Result<void> StudyBudget::check_enqueue() const {
    if (!has_used_trials()) return {};
    return Error{Code::kResourceExhausted,
                 "study '" + definition_.name() + "' has used its budget of " +
                     counted(static_cast<std::int64_t>(*limits().trials), "trial") +
                     "; raise budget.trials to enqueue more"};
}

bool StudyBudget::is_full() const {
    return limits().parallel &&
           trials_.running().size() >= static_cast<std::size_t>(*limits().parallel);
}

std::optional<std::string> StudyBudget::exceeded_by(const Trial& trial) const {
    if (!watch().exceeds_budget(trial)) return std::nullopt;
    return "it cost more than " + number_text(*limits().cost->per_trial) + " of '" +
           limits().cost->metric + "', the bound of a trial";
}

std::optional<std::int64_t> StudyBudget::deadline_ms(std::int64_t now_ms) const {
    std::optional<std::int64_t> deadline;
    if (limits().time_ms && started_ms_ != 0) deadline = started_ms_ + *limits().time_ms;
    if (!limits().cost) return deadline;
    if (const auto left_ms = watch().left_ms(running_cost(now_ms), trials_.running().size()))
        deadline = std::min(deadline.value_or(now_ms + *left_ms), now_ms + *left_ms);
    return deadline;
}

/// Of a trial that counts, in any order of trials.
void StudyBudget::note_start(std::int64_t start_ms) {
    const bool is_first = started_ms_ == 0 || start_ms < started_ms_;
    if (start_ms != 0 && is_first) started_ms_ = start_ms;
}

void StudyBudget::pay_attempt(Trial& trial, std::int64_t now_ms) {
    watch().pay_attempt(trial, now_ms);
}

void StudyBudget::trial_ended(const Trial& trial) {
    watch().trial_ended(trial, violation_of(trial, definition_.config()) <= 0);
}

void StudyBudget::recount() {
    forget();
    begin_time_anew();
    for (const Trial& trial : trials_)
        if (!beginning_.excuses(trial)) note_start(trial.start_ms);
}

void StudyBudget::restored(const Trial& trial) {
    forget();
    if (!beginning_.excuses(trial)) note_start(trial.start_ms);
}

}  // namespace tune::tuner
