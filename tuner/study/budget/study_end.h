#pragma once
// When a study ends by itself: the budgets other than the number of trials, watched as trials end.
// Pure; the time is passed in.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tuner/config/study_config.h"
#include "tuner/study/trial/trial.h"

namespace tune::tuner {

/// What ended a study by itself. kNone: nothing yet.
enum class StudyEnd {
    kNone,
    kTrials,
    kSpace,
    kTime,
    kCost,
    kNoProgress,
    kTarget,
    kSteps,
    kFailures
};

/// "none", "trials", "space", "time", "cost", "no_progress", "target", "steps",
/// "failures" (which stops the study instead of completing it).
[[nodiscard]] std::string_view study_end_name(StudyEnd end);
/// kNone for a name that is not known.
[[nodiscard]] StudyEnd study_end_from_name(std::string_view name);

/// Follows what trials cost and how long none of them was better. Not the number of trials: that is
/// the study's own count.
class BudgetWatch {
public:
    /// `goals`: of the objectives, in their order. `trials_per_process` of a pool pay for its GPUs
    /// together.
    BudgetWatch(BudgetConfig budget, std::vector<Goal> goals, int trials_per_process = 1)
        : budget_(std::move(budget)),
          goals_(std::move(goals)),
          trials_per_process_(trials_per_process) {}

    struct Over {
        StudyEnd why = StudyEnd::kNone;
        std::string note;  ///< one sentence without a full stop
    };

    /// The attempt that ends now is paid: `trial.cost` grows. Call it before the trial's progress
    /// is let go.
    void pay_attempt(Trial& trial, std::int64_t now_ms);

    /// A trial has ended, in the order of the ends. Its cost was paid.
    void trial_ended(const Trial& trial, bool is_feasible);

    /// What trials that have not ended have cost in attempts before.
    void pay(double cost) { paid_ += cost; }

    /// What ended attempts have cost.
    [[nodiscard]] double paid() const { return paid_; }

    /// The running trials' part of the cost so far.
    [[nodiscard]] double running_cost(const Trial& trial, std::int64_t now_ms) const;

    /// Which budget is used, given the cost of the running trials; nothing: none.
    [[nodiscard]] std::optional<Over> over(double running_cost) const;

    /// What a running trial will have cost at its end beyond what is paid: what it has reported, at
    /// least the bound of a trial, or without one the mean of those that ended.
    [[nodiscard]] double expected_cost(const Trial& trial, std::int64_t now_ms) const;

    /// Whether the cost of one more trial fits beside what is expected of the running ones. Times
    /// are cut off when they are used, so they always fit.
    [[nodiscard]] bool has_room(double expected_of_running) const;

    /// Whether a running trial has cost more than one may.
    [[nodiscard]] bool exceeds_budget(const Trial& trial) const;

    /// Milliseconds until `running` trials have used the budget of time spent; nothing: it has no
    /// such budget.
    [[nodiscard]] std::optional<std::int64_t> left_ms(double running_cost,
                                                      std::size_t running) const;

private:
    [[nodiscard]] double per_second() const;
    [[nodiscard]] double mean_cost() const;
    void note_values(const Trial& trial);

    BudgetConfig budget_;
    std::vector<Goal> goals_;
    int trials_per_process_;
    double paid_ = 0;
    std::uint64_t paid_trials_ = 0;  ///< ended trials that cost something
    double paid_by_ended_ = 0;
    bool is_target_reached_ = false;
    /// Losses that the next trial has to beat by min_delta, each in some objective; none dominates
    /// another. One row with one objective.
    std::vector<std::vector<double>> to_beat_;
    std::uint64_t since_progress_ = 0;
};

}  // namespace tune::tuner
