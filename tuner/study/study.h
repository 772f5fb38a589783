#pragma once
// A study in memory: the rules by which its trials move, and the parts that know the rest. No I/O,
// no clock, no lock: the caller (Studies) holds its mutex, passes the time in, and writes what
// changed to the journal.
//
//   definition    identity, configuration, earlier spaces
//   trials        by number, state and request
//   suggestions   the model and what it has observed
//   front         the best trials
//   budget        what is spent, and whether it is over
//   beginning     failures before the first success
//   needs         what a trial needs where it runs
//   pruner        reports, and whose attempts end early
//   population    whom a trial continues
//   registration  the best model's version
//
// Each part holds an invariant of its own, stated in its header. Where one change concerns several
// of them (a trial ends: its cost is paid, the front, the model and the pruner hear of it), it is a
// function of Study. Its own invariants, checked by the property tests:
//  - trials.size() - beginning.count() never exceeds budget.trials: what exists was asked within
//    the budget;
//  - a trial has at most one running attempt, and attempt numbers only grow;
//  - the model knows each trial from the moment it is created;
//  - no trial starts once a budget is used (StudyBudget), whoever asks.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tuner/config/study_config.h"
#include "tuner/protocol.h"
#include "tuner/pruner/pruner.h"
#include "tuner/study/budget/failed_beginning.h"
#include "tuner/study/budget/study_budget.h"
#include "tuner/study/extension.h"
#include "tuner/study/placement/needs_estimate.h"
#include "tuner/study/pruner_feed.h"
#include "tuner/study/registration_state.h"
#include "tuner/study/study_definition.h"
#include "tuner/study/study_log.h"
#include "tuner/study/study_state.h"
#include "tuner/study/suggestion_desk.h"
#include "tuner/study/trial/attempt_end.h"
#include "tuner/study/trial/front.h"
#include "tuner/study/trial/known_points.h"
#include "tuner/study/trial/population.h"
#include "tuner/study/trial/trial_table.h"

namespace tune::tuner {

struct TrialStart {
    Holder holder = {};
    std::string worker = {};
    std::string ask_request = {};
    std::int64_t now_ms = 0;
};

/// What a study's document says besides its definition and its trials.
struct StudyRecord {
    StudyStatus status = {};
    std::int64_t started_ms = 0;
    std::vector<StudyEpoch> earlier = {};
    std::vector<ExcusedEnds> excused = {};
};

/// Trials that one call ends with known values at most; keeps a transaction small.
inline constexpr std::size_t kReusedMax = 1000;

class Study {
public:
    Study(StudyIdentity identity, StudyConfig config);
    /// Its parts refer to each other.
    Study(const Study&) = delete;
    Study& operator=(const Study&) = delete;

    [[nodiscard]] const StudyDefinition& definition() const { return definition_; }
    [[nodiscard]] const StudyIdentity& identity() const { return definition_.identity(); }
    [[nodiscard]] const std::string& name() const { return definition_.name(); }
    [[nodiscard]] const StudyConfig& config() const { return definition_.config(); }
    [[nodiscard]] const StudyStatus& status() const { return status_; }
    [[nodiscard]] StudyState state() const { return status_.state; }
    [[nodiscard]] const TrialTable& trials() const { return trials_; }
    /// A trial, to be changed in what is neither its state nor its result; nullptr: there is none.
    [[nodiscard]] Trial* find(std::uint64_t number) { return trials_.find(number); }
    [[nodiscard]] const Front& front() const { return front_; }
    [[nodiscard]] const StudyBudget& budget() const { return budget_; }
    [[nodiscard]] const FailedBeginning& beginning() const { return beginning_; }
    /// Who may be continued, in population based training.
    [[nodiscard]] const Population& population() const { return population_; }
    [[nodiscard]] const SuggestionDesk& suggestions() const { return suggestions_; }
    [[nodiscard]] SuggestionDesk& suggestions() { return suggestions_; }
    [[nodiscard]] const NeedsEstimate& needs() const { return needs_; }
    [[nodiscard]] NeedsEstimate& needs() { return needs_; }
    /// Its pruner, and what that has not observed yet after a restart or a change.
    [[nodiscard]] const PrunerFeed& pruner() const { return pruner_; }
    [[nodiscard]] PrunerFeed& pruner() { return pruner_; }
    [[nodiscard]] const RegistrationState& registration() const { return registration_; }
    [[nodiscard]] RegistrationState& registration() { return registration_; }
    [[nodiscard]] const Attendance& attendance() const { return attendance_; }
    [[nodiscard]] Attendance& attendance() { return attendance_; }

    // --- trials ---

    /// Whether a trial may start now: the study runs, has time, a free place, and a trial or a
    /// point left. Where suggestions are made elsewhere, also true when only the model could tell
    /// that no point is left.
    [[nodiscard]] bool may_start(std::int64_t now_ms);
    /// How many trials could start now, one after the other, at most `most`: those that wait, and
    /// those that can be suggested. Where only the model or the costs of others could tell, one.
    [[nodiscard]] std::size_t startable(std::int64_t now_ms, std::size_t most);

    /// Ends trials that are next and whose points a complete trial has had (duplicates: reuse),
    /// with the known values and without running them. What comes next then has to run. At most
    /// kReusedMax at a time. Cost: one suggestion more than what it returns.
    [[nodiscard]] std::vector<Trial*> reuse_known(std::int64_t now_ms);

    /// Starts the oldest queued trial, or a new one with the sampler's suggestion. REQUIRES:
    /// may_start(now_ms); where suggestions are made elsewhere, that a trial is queued. Cost: one
    /// suggestion.
    Trial& start(TrialStart start);

    /// Adds a queued trial with these values; what they leave open the sampler fills in now.
    /// Errors: kInvalidParameterValue for values outside the space, kResourceExhausted when the
    /// budget is used.
    Result<Trial*> enqueue(const Point& fixed, std::string enqueue_request, std::int64_t now_ms);
    /// Notes that an enqueue with these values and this request id made the trial.
    void note_enqueued(Trial& trial, const Point& fixed, std::string enqueue_request) {
        trials_.note_enqueued(trial, fixed, std::move(enqueue_request));
    }
    /// Adds the trial that was suggested elsewhere; it waits to be started. REQUIRES:
    /// suggestions().end said true, made.point. Errors: kInvalidParameterValue when a given point
    /// is forbidden.
    Result<Trial*> add_suggested(const SuggestionWork& work, const Suggestion& made,
                                 std::int64_t now_ms);

    /// A row of a metric that an attempt of a trial logged; rows come in the order of the log.
    /// Nothing: the study does not measure it. kPrune: the pruner wants the attempt stopped, which
    /// is the running one.
    std::optional<Verdict> report(Trial& trial, std::string_view metric, const Objective::Row& row,
                                  int attempt);

    /// The attempt of a running trial ended without a result: the trial waits for the next one.
    void requeue(Trial& trial, std::string reason, std::int64_t now_ms);
    /// Ends a queued or running trial for good.
    void finish(Trial& trial, TrialEnd end);
    /// What an agent's finish means for a running trial: requeue or finish, see attempt_end.
    void settle(Trial& trial, const FinishRequest& request, std::int64_t now_ms);
    /// As settle for an agent that is gone.
    void lose_attempt(Trial& trial, std::string reason, std::int64_t now_ms);

    // --- the study ---

    void set_state(StudyState state, std::string note = {});
    /// Moves a running study whose budget or space is used and whose trials have all ended to
    /// completed. True if it did.
    bool complete_if_done(std::int64_t now_ms);
    /// Stops a running study whose first trials fail alike (stop_after_failures). True if it did;
    /// the caller cancels what waits and runs.
    bool stop_if_failing();
    /// For a study that runs again after a rest: failures before the first success use up no budget
    /// (nor does what stop_if_failing() had cancelled), and their points are queued again. The
    /// queued trials. Nothing where stop_after_failures is 0. Cost: O(trials), and a suggestion
    /// each.
    [[nodiscard]] std::vector<Trial*> excuse_failures(std::int64_t now_ms);
    /// True once after the first success excused failures before it: the caller writes the study.
    [[nodiscard]] bool take_excused() { return beginning_.take_excused(); }

    /// Takes what a resumed study may change (everything but space, metric, warm start and seed).
    /// REQUIRES: definition().differences() is empty.
    void reconfigure(StudyConfig config);
    /// As reconfigure, with another space too: trials that exist get the `init` of parameters that
    /// are new. REQUIRES: metric and seed are the same. `begun` counts as far as it leads to the
    /// space of `config` from the present one. Errors: kResourceConflict naming what does not fit
    /// (then nothing changes). Cost: O(trials), most of it for those that `begun` lacks.
    Result<void> extend(StudyConfig config, Extension begun);
    void rename(const std::string& name) { definition_.rename(name); }
    void set_priority(int priority) { definition_.set_priority(priority); }

    /// Its experiment was deleted: nothing of it can be written, and no trial starts. Not kept in
    /// the journal: the store knows.
    void set_experiment_deleted(bool is_deleted) { is_experiment_deleted_ = is_deleted; }
    [[nodiscard]] bool is_experiment_deleted() const { return is_experiment_deleted_; }

    /// Grows with each change that was made known; for clients that wait for the next one.
    [[nodiscard]] std::int64_t version() const { return version_; }
    void touch() { ++version_; }

    // --- rebuilding after a restart ---

    /// Before its trials.
    void restore(StudyRecord record);
    /// Takes a trial from the journal. A missing one becomes a queued trial. REQUIRES: in order of
    /// number; the point lies in the space.
    void restore(Trial trial);

private:
    Trial& add_trial(NextPoint made, std::int64_t asked_at, std::int64_t now_ms);
    Trial& add_next(std::int64_t now_ms);
    void roll_back(Trial& trial, std::string_view metric, const Objective::Row& row, int attempt);
    void settle_as(Trial& trial, AttemptEnd end, std::int64_t now_ms);
    [[nodiscard]] std::optional<BudgetWatch::Over> ends_by(std::int64_t now_ms);
    void forget_models();
    void restore_unwritten();
    void restore_next(Trial trial, bool is_written);

    StudyDefinition definition_;
    StudyStatus status_;
    StudyLog log_;
    TrialTable trials_;
    Front front_;
    FailedBeginning beginning_;
    StudyBudget budget_;
    SuggestionDesk suggestions_;
    NeedsEstimate needs_;
    PrunerFeed pruner_;
    Population population_;
    std::optional<KnownPoints> known_;  // nothing: to be made from the trials
    RegistrationState registration_;
    Attendance attendance_;
    std::int64_t version_ = 0;
    bool is_experiment_deleted_ = false;
};

}  // namespace tune::tuner
