#pragma once
// The beginning of a study while none of its trials has succeeded. Failures then are mistakes of
// the command, not results: they stop the study when they are alike, and use up no budget once it
// runs again or succeeds. Pure.
//
// Invariants:
//  - count() is the number of ended trials that ends() holds;
//  - what is excused is kept by the place in the log where it ended, so that a replay and a restart
//    count as the study counted;
//  - no failure after the first success is excused.

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tuner/config/study_config.h"
#include "tuner/study/budget/failure_watch.h"
#include "tuner/study/study_log.h"
#include "tuner/study/trial/trial_table.h"

namespace tune::tuner {

/// Not thread-safe: part of a Study. What it refers to outlives it.
class FailedBeginning {
public:
    FailedBeginning(const StudyConfig& config, const TrialTable& trials, const StudyLog& log)
        : config_(config), trials_(trials), log_(log) {}

    /// Where what is excused ended, oldest first.
    [[nodiscard]] const std::vector<ExcusedEnds>& ends() const { return ends_; }
    /// How many trials count towards no budget: those that failed before the first success.
    [[nodiscard]] std::size_t count() const { return count_; }
    /// Whether this trial is one of them.
    [[nodiscard]] bool excuses(const Trial& trial) const;

    /// Why the study is to stop, one sentence without a full stop; nothing: go on. Cost: O(trials)
    /// the first time after forget().
    [[nodiscard]] std::optional<std::string> should_stop();
    /// The study was stopped by its failures: what is cancelled from here on is excused with them.
    void stop();

    /// A trial of the table has ended. True if it is the first success and excuses the failures
    /// before it. Their points are not tried again: nobody says that anything was mended.
    bool trial_ended(const Trial& trial);
    /// True once after trial_ended() was: ends() is to be written.
    [[nodiscard]] bool take_excused() { return std::exchange(has_excused_, false); }

    /// The study runs again after a rest: excuses the failures before the first success, and what a
    /// stop by failures had cancelled. The points of what is excused now, by number; nothing: there
    /// is nothing to excuse, or stop_after_failures is 0. Cost: O(trials).
    [[nodiscard]] std::optional<std::vector<Point>> excuse();

    /// Another configuration counts failures anew.
    void forget() { watch_.reset(); }
    /// Before trials are restored.
    void restore(std::vector<ExcusedEnds> ends) { ends_ = std::move(ends); }
    /// A trial came back from the journal.
    void restored(const Trial& trial);

private:
    [[nodiscard]] std::int64_t last_failure() const;
    [[nodiscard]] bool is_stopped() const { return !ends_.empty() && ends_.back().until == 0; }
    bool excuse_before_success();

    const StudyConfig& config_;
    const TrialTable& trials_;
    const StudyLog& log_;
    std::optional<FailureWatch> watch_;  // nothing: to be made from the trials
    std::vector<ExcusedEnds> ends_;
    std::size_t count_ = 0;
    bool has_excused_ = false;  // since it was last asked
};

}  // namespace tune::tuner
