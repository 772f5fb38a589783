// Each budget is a sum or a flag that is updated when a trial ends, so asking whether the study is
// over costs O(1). A cost counts once: as a metric by its greatest value over all attempts, as time
// per attempt. With several objectives progress means a new point on the front, so the front is
// kept.

#include "tuner/study/budget/study_end.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "base/text/counted.h"
#include "base/text/number_text.h"
#include "tuner/sampler/nsga/pareto.h"

namespace tune::tuner {
namespace {

constexpr std::array<std::string_view, 9> kNames = {
    "none", "trials", "space", "time", "cost", "no_progress", "target", "steps", "failures"};

std::string cost_text(const CostBudget& budget) {
    if (budget.of == CostBudget::Of::kMetric)
        return number_text(budget.max) + " of '" + budget.metric + "'";
    const std::string time = duration_text(static_cast<std::int64_t>(budget.max * 1000));
    return budget.of == CostBudget::Of::kSeconds ? time + " of running trials"
                                                 : time + " of GPU time";
}

}  // namespace

std::string_view study_end_name(StudyEnd end) {
    return kNames.at(static_cast<std::size_t>(end));
}

StudyEnd study_end_from_name(std::string_view name) {
    const auto found = std::find(kNames.begin(), kNames.end(), name);
    return found == kNames.end() ? StudyEnd::kNone : static_cast<StudyEnd>(found - kNames.begin());
}

double BudgetWatch::per_second() const {
    if (!budget_.cost) return 0;
    switch (budget_.cost->of) {
        case CostBudget::Of::kSeconds: return 1;
        case CostBudget::Of::kGpuSeconds:
            return static_cast<double>(budget_.gpus_per_trial) / trials_per_process_;
        case CostBudget::Of::kMetric: return 0;
    }
    return 0;
}

double BudgetWatch::running_cost(const Trial& trial, std::int64_t now_ms) const {
    if (!budget_.cost || !trial.progress) return 0;
    // A metric counts over all attempts: they log to one run, and the greatest value counts.
    if (budget_.cost->of == CostBudget::Of::kMetric)
        return std::max(trial.progress->cost - trial.cost, 0.0);
    if (trial.state != TrialState::kRunning) return 0;
    return per_second() *
           static_cast<double>(std::max<std::int64_t>(now_ms - trial.attempt_start_ms, 0)) / 1000;
}

void BudgetWatch::pay_attempt(Trial& trial, std::int64_t now_ms) {
    const double cost = running_cost(trial, now_ms);
    trial.cost += cost;
    paid_ += cost;
}

void BudgetWatch::trial_ended(const Trial& trial, bool is_feasible) {
    if (trial.cost > 0) {
        ++paid_trials_;
        paid_by_ended_ += trial.cost;
    }
    if (trial.state == TrialState::kCancelled) return;
    ++since_progress_;
    if (is_feasible && trial.state == TrialState::kComplete && trial.value) note_values(trial);
}

void BudgetWatch::note_values(const Trial& trial) {
    if (1 + trial.more_values.size() != goals_.size()) return;
    std::vector<double> losses = losses_of(*trial.value, trial.more_values, goals_);
    if (std::any_of(losses.begin(), losses.end(), [](double loss) { return std::isnan(loss); }))
        return;
    bool reaches = !budget_.target.empty();
    for (std::size_t i = 0; reaches && i < losses.size(); ++i)
        reaches = losses[i] <=
                  (goals_[i] == Goal::kMaximize ? -budget_.target.at(i) : budget_.target.at(i));
    is_target_reached_ = is_target_reached_ || reaches;
    if (!budget_.no_progress) return;
    const double delta = budget_.no_progress->min_delta;
    const auto beats = [&losses, delta](const std::vector<double>& other) {
        for (std::size_t i = 0; i < losses.size(); ++i)
            if (losses[i] < other[i] - delta) return true;
        return false;
    };
    if (!std::all_of(to_beat_.begin(), to_beat_.end(), beats)) return;
    std::erase_if(to_beat_, [&losses](const std::vector<double>& other) {
        return std::equal(losses.begin(), losses.end(), other.begin(), std::less_equal<>());
    });
    to_beat_.push_back(std::move(losses));
    since_progress_ = 0;
}

std::optional<BudgetWatch::Over> BudgetWatch::over(double running_cost) const {
    const BudgetConfig& budget = budget_;
    if (is_target_reached_) {
        std::string target;
        for (const double each : budget.target)
            target += (target.empty() ? "" : ", ") + number_text(each);
        return Over{StudyEnd::kTarget, "the target of " + target + " is reached"};
    }
    if (budget.no_progress && since_progress_ >= budget.no_progress->trials)
        return Over{
            StudyEnd::kNoProgress,
            "no progress in " + counted(static_cast<std::int64_t>(since_progress_), "trial")};
    if (!budget.cost) return std::nullopt;
    // With a bound for each trial those that run have their share, and may use all of it.
    const double used = paid_ + running_cost;
    const bool is_bounded = budget.cost->per_trial.has_value();
    if (is_bounded ? used > budget.cost->max || paid_ >= budget.cost->max
                   : used >= budget.cost->max)
        return Over{StudyEnd::kCost, "the cost budget of " + cost_text(*budget.cost) + " is used"};
    return std::nullopt;
}

double BudgetWatch::mean_cost() const {
    return paid_trials_ == 0 ? 0 : paid_by_ended_ / static_cast<double>(paid_trials_);
}

double BudgetWatch::expected_cost(const Trial& trial, std::int64_t now_ms) const {
    if (!budget_.cost) return 0;
    const double least =
        budget_.cost->per_trial ? *budget_.cost->per_trial - trial.cost : mean_cost();
    return std::max(running_cost(trial, now_ms), least);
}

bool BudgetWatch::has_room(double expected_of_running) const {
    const auto& budget = budget_.cost;
    if (!budget || budget->of != CostBudget::Of::kMetric) return true;
    if (!budget->per_trial && paid_trials_ == 0) return true;
    const double next = budget->per_trial.value_or(mean_cost());
    return paid_ + expected_of_running + next <= budget->max;
}

bool BudgetWatch::exceeds_budget(const Trial& trial) const {
    return budget_.cost && budget_.cost->per_trial && trial.progress &&
           trial.progress->cost > *budget_.cost->per_trial;
}

std::optional<std::int64_t> BudgetWatch::left_ms(double running_cost, std::size_t running) const {
    if (per_second() == 0 || running == 0) return std::nullopt;
    const double seconds =
        (budget_.cost->max - paid_ - running_cost) / (per_second() * static_cast<double>(running));
    return static_cast<std::int64_t>(std::ceil(std::max(seconds, 0.0) * 1000));
}

}  // namespace tune::tuner
