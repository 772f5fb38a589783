#pragma once
// The budget of a study: what its trials have used of it, what is excused, and which part of it is
// used up. Pure; the time is passed in.
//
// Invariants:
//  - what is spent is a function of the trials and of what is excused: it is made from them where
//    it is not there, in the order in which they ended, so a restart or a changed budget finds the
//    same bits as if nothing had happened;
//  - excused trials (FailedBeginning) use up nothing, neither numbers nor time nor costs.
//
// Running trials count with what they have cost so far when the question is whether the budget is
// used up, and with what they are expected to cost when it is whether one more may start.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tuner/study/budget/failed_beginning.h"
#include "tuner/study/budget/study_end.h"
#include "tuner/study/study_definition.h"
#include "tuner/study/trial/trial_table.h"

namespace tune::tuner {

/// Not thread-safe, not even where it is const: part of a Study. What it refers to outlives it.
/// Cost: O(running trials) with a budget of costs, else O(1); O(trials) once after a change.
class StudyBudget {
public:
    StudyBudget(const StudyDefinition& definition, const TrialTable& trials,
                const FailedBeginning& beginning)
        : definition_(definition), trials_(trials), beginning_(beginning) {}

    /// The budget that is used at `now_ms`, if any, besides that of the number of trials: no trial
    /// starts, and those that run are to be stopped.
    [[nodiscard]] std::optional<BudgetWatch::Over> over(std::int64_t now_ms) const;
    /// Whether what is left may not do for the cost of one more trial beside those that run.
    [[nodiscard]] bool lacks_room(std::int64_t now_ms) const;
    /// How many trials may still be made; nothing: as many as one likes.
    [[nodiscard]] std::optional<std::size_t> trials_left() const;
    [[nodiscard]] bool has_used_trials() const { return trials_left() == std::size_t{0}; }
    /// Whether a trial is left to enqueue. Errors: kResourceExhausted.
    [[nodiscard]] Result<void> check_enqueue() const;
    /// Whether as many trials run as may at once.
    [[nodiscard]] bool is_full() const;
    /// Why this running trial must stop: it cost more than one may.
    [[nodiscard]] std::optional<std::string> exceeded_by(const Trial& trial) const;
    /// When the budget of time ends, or that of the running trials' time if it is sooner; nothing:
    /// never, as things are.
    [[nodiscard]] std::optional<std::int64_t> deadline_ms(std::int64_t now_ms) const;
    /// What attempts that have ended have cost, as budget.cost counts it; 0 without such a budget.
    [[nodiscard]] double paid() const { return watch().paid(); }
    /// When the first trial that counts started, from which the budget of time runs; 0: none has.
    [[nodiscard]] std::int64_t started_ms() const { return started_ms_; }

    /// A trial starts: with the first one the time begins.
    void begin_time(std::int64_t now_ms) {
        if (started_ms_ == 0) started_ms_ = now_ms;
    }
    /// The attempt of a running trial ends now: `trial.cost` grows. Before the trial's state
    /// changes.
    void pay_attempt(Trial& trial, std::int64_t now_ms);
    void trial_ended(const Trial& trial);
    /// Other trials are excused, or the configuration is another one.
    void forget() { watch_.reset(); }
    /// As forget; and the time runs from the first start that still counts.
    void recount();
    /// The time begins anew, with the next start.
    void begin_time_anew() { started_ms_ = 0; }
    /// From the study's document, before its trials.
    void restore(std::int64_t started_ms) { started_ms_ = started_ms; }
    /// A trial came back from the journal; whether it is excused is known.
    void restored(const Trial& trial);

private:
    [[nodiscard]] BudgetWatch& watch() const;
    void note_start(std::int64_t start_ms);
    [[nodiscard]] bool is_out_of_time(std::int64_t now_ms) const;
    [[nodiscard]] double running_cost(std::int64_t now_ms) const;
    [[nodiscard]] const BudgetConfig& limits() const { return definition_.config().budget; }

    const StudyDefinition& definition_;
    const TrialTable& trials_;
    const FailedBeginning& beginning_;
    mutable std::optional<BudgetWatch> watch_;  // nothing: to be made from the trials
    std::int64_t started_ms_ = 0;
};

}  // namespace tune::tuner
