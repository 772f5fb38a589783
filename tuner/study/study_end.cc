#include "tuner/study/study_end.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tuner/study/objective.h"

namespace tune::tuner {
namespace {

constexpr std::array<std::string_view, 8> kNames = {"none", "trials",      "space",  "time",
                                                    "cost", "no_progress", "target", "steps"};

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
        case CostBudget::Of::kGpuSeconds: return budget_.gpus_per_trial;
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
    const bool has_value = is_feasible && trial.state == TrialState::kComplete && trial.value &&
                           !std::isnan(*trial.value);
    if (!has_value) return;
    const double value = *trial.value;
    if (!best_ || is_better(value, *best_, goal_)) best_ = value;
    const double delta = budget_.no_progress ? budget_.no_progress->min_delta : 0;
    const double bar =
        progress_ ? (goal_ == Goal::kMinimize ? *progress_ - delta : *progress_ + delta) : 0;
    if (progress_ && !is_better(value, bar, goal_)) return;
    progress_ = value;
    since_progress_ = 0;
}

std::optional<BudgetWatch::Over> BudgetWatch::over(double running_cost) const {
    const BudgetConfig& budget = budget_;
    if (budget.target && best_ && !is_better(*budget.target, *best_, goal_))
        return Over{StudyEnd::kTarget,
                    "the target of " + number_text(*budget.target) + " is reached"};
    if (budget.no_progress && since_progress_ >= budget.no_progress->trials)
        return Over{StudyEnd::kNoProgress,
                    "no progress in " + std::to_string(since_progress_) + " trials"};
    if (budget.cost && paid_ + running_cost >= budget.cost->max)
        return Over{StudyEnd::kCost, "the cost budget of " + cost_text(*budget.cost) + " is used"};
    return std::nullopt;
}

bool BudgetWatch::has_room(std::span<const double> running_costs) const {
    const auto& budget = budget_.cost;
    if (!budget || budget->of != CostBudget::Of::kMetric || paid_trials_ == 0) return true;
    const double mean = paid_by_ended_ / static_cast<double>(paid_trials_);
    double expected = paid_ + mean;
    for (const double cost : running_costs) expected += std::max(cost, mean);
    return expected <= budget->max;
}

std::optional<std::int64_t> BudgetWatch::left_ms(double running_cost, std::size_t running) const {
    if (per_second() == 0 || running == 0) return std::nullopt;
    const double seconds =
        (budget_.cost->max - paid_ - running_cost) / (per_second() * static_cast<double>(running));
    return static_cast<std::int64_t>(std::ceil(std::max(seconds, 0.0) * 1000));
}

}  // namespace tune::tuner
