#pragma once
// What a study tells its pruner: reports and ends as they come, and after a restart or a change of
// the pruner all that came before, in the order of its time.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tuner/pruner/pruner.h"
#include "tuner/study/trial/objective.h"
#include "tuner/study/trial/trial.h"
#include "tuner/study/trial/trial_table.h"

namespace tune::tuner {

/// Not thread-safe: part of a Study.
class PrunerFeed {
public:
    explicit PrunerFeed(std::unique_ptr<Pruner> pruner) : pruner_(std::move(pruner)) {}

    /// Takes another pruner. `is_behind`: there is a history that it has not observed.
    void replace(std::unique_ptr<Pruner> pruner, bool is_behind);
    /// Another number after each change of the pruner, which needs the history anew.
    [[nodiscard]] std::uint64_t version() const { return version_; }

    /// A row of the objective of a running trial. While there is a history to be observed, it is
    /// kept and observed afterwards.
    Verdict report(std::uint64_t number, const Objective::Row& row);
    /// The trial has ended.
    void finish(const Trial& trial);
    /// The trial's next attempt began from nothing: what it reported counts no more.
    void begin_anew(std::uint64_t number);

    // --- history: add_reports for each trial, then replay until it says true ---

    /// There are trials that the pruner has not observed.
    void fall_behind() { is_behind_ = true; }
    [[nodiscard]] bool is_behind() const { return is_behind_; }
    /// The rows of `metric`, the objective, of one trial. Any order of trials.
    void add_reports(const Trial& trial, const std::string& metric,
                     const std::vector<Objective::Row>& rows);
    /// Tells the pruner up to `events_max` more of the reports and ends there were, in the order of
    /// their times: what an asynchronous pruner keeps depends on who came first. True once it knows
    /// all.
    bool replay(const TrialTable& trials, std::size_t events_max);

private:
    /// A report or the end of a trial.
    struct Event {
        std::int64_t time_ms = 0;
        std::uint64_t number = 0;
        bool is_end = false;
        std::int64_t step = 0;
        double value = 0;
    };
    void sort_history(const TrialTable& trials);
    void tell_end(const Trial& trial);
    [[nodiscard]] std::uint64_t pruner_number(std::uint64_t number) const;

    std::unique_ptr<Pruner> pruner_;
    std::unordered_map<std::uint64_t, std::uint64_t> restarts_;  // trials that began anew
    bool is_behind_ = false;
    std::uint64_t version_ = 0;
    std::vector<Event> history_;    // what the pruner has not observed
    std::size_t history_sent_ = 0;  // so many of them; sorted once it is above 0
    std::vector<std::pair<std::uint64_t, Objective::Row>> waiting_;
};

}  // namespace tune::tuner
