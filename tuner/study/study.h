#pragma once
// A study in memory: its trials and the rules by which they move. No I/O, no clock, no lock: the
// caller (Studies) holds its mutex, passes the time in, and writes what changed to the journal.
//
// Invariants, checked by the property tests:
//  - trials.size() - excused_count() never exceeds budget.trials: what exists was asked within the
//    budget;
//  - a trial has at most one running attempt, and attempt numbers only grow;
//  - an ended trial never changes again;
//  - the sampler knows each trial from the moment it is created;
//  - no trial starts once a budget is used (BudgetWatch), whoever asks.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tuner/config/study_config.h"
#include "tuner/protocol.h"
#include "tuner/pruner/pruner.h"
#include "tuner/sampler/sampler.h"
#include "tuner/study/failure_watch.h"
#include "tuner/study/pruner_feed.h"
#include "tuner/study/study_end.h"
#include "tuner/study/suggestion.h"
#include "tuner/study/trial/known_points.h"
#include "tuner/study/trial/peak_memory.h"
#include "tuner/study/trial/population.h"
#include "tuner/study/trial/trial.h"

namespace tune::tuner {

/// running: trials may start. paused: none start, running ones go on. stopped: ended by the user;
/// may be resumed. completed: the budget is used, or every point of a finite space.
enum class StudyState { kRunning, kPaused, kStopped, kCompleted };
[[nodiscard]] std::string_view study_state_name(StudyState state);
[[nodiscard]] Result<StudyState> study_state_from_name(std::string_view name);

/// A trial whose machine or agent was lost this often is given up: it may be what kills them.
inline constexpr int kLostAttemptsMax = 10;

/// What a study is born with.
struct StudyIdentity {
    std::string name = {};
    std::string id = {};      ///< 16 hex digits; part of document keys and checkpoint folders
    std::string run_id = {};  ///< the MLflow parent run
    std::int64_t experiment_id = 0;
    std::uint64_t seed = 0;
    std::int64_t created_ms = 0;
    std::string user = {};   ///< `mlflow.user` of its runs; empty: unknown
    std::string owner = {};  ///< the user of the server who made it; empty: `user`
};

struct TrialStart {
    Holder holder = {};
    std::string worker = {};
    std::string ask_request = {};
    std::int64_t now_ms = 0;
};

struct TrialEnd {
    TrialState state = TrialState::kFailed;
    std::optional<double> value = {};
    std::string reason = {};
    std::int64_t now_ms = 0;
    std::vector<double> more_values = {};
    std::vector<double> constraint_values = {};
};

/// Trials that one call ends with known values at most; keeps a transaction small.
inline constexpr std::size_t kReusedMax = 1000;

/// What became of StudyConfig::register_as.
struct Registration {
    std::string name = {};     ///< of the registered model
    std::uint64_t trial = 0;   ///< whose model it is
    std::int64_t version = 0;  ///< 0: there is none
    std::string model_id = {};
    std::string error = {};  ///< why there is none
};

/// How points were suggested before the study was extended or given another sampler: what a replay
/// needs.
struct StudyEpoch {
    std::int64_t until = 0;  ///< the last log position of it
    Space space;
    SamplerConfig sampler;
};

class Study {
public:
    using Counts = std::array<std::size_t, kTrialStateCount>;

    Study(StudyIdentity identity, StudyConfig config);

    [[nodiscard]] const StudyIdentity& identity() const { return identity_; }
    [[nodiscard]] const std::string& name() const { return identity_.name; }
    [[nodiscard]] const StudyConfig& config() const { return config_; }
    /// On whose account its trials run: shares and quotas are counted by this.
    [[nodiscard]] const std::string& user() const {
        return identity_.owner.empty() ? identity_.user : identity_.owner;
    }
    /// As it was asked for; what the user's quota allows may be less.
    [[nodiscard]] int priority() const { return config_.priority.value_or(0); }
    void set_priority(int priority) {
        config_.priority = priority;
        shared_config_.reset();
    }
    /// The configuration as it is now, for who reads it later without the lock. Cost: a copy after
    /// each change of it. REQUIRES: who calls it may also change the study.
    [[nodiscard]] std::shared_ptr<const StudyConfig> shared_config() const {
        if (!shared_config_) shared_config_ = std::make_shared<const StudyConfig>(config_);
        return shared_config_;
    }
    [[nodiscard]] StudyState state() const { return state_; }
    /// Why it is in this state, when that needs saying; one sentence or empty.
    [[nodiscard]] const std::string& note() const { return note_; }
    /// What keeps agents from running its trials, as a sentence; empty: nothing. Not kept on disk.
    [[nodiscard]] const std::string& obstacle() const { return obstacle_; }
    void set_obstacle(std::string obstacle) { obstacle_ = std::move(obstacle); }
    /// What completed it; kNone while it is not completed.
    [[nodiscard]] StudyEnd end() const { return end_; }
    [[nodiscard]] std::int64_t started_ms() const { return started_ms_; }
    /// When the last trial ended; 0: none has.
    [[nodiscard]] std::int64_t last_end_ms() const { return last_end_ms_; }
    /// How many trials count towards no budget: those that failed before the first
    /// success.
    [[nodiscard]] std::size_t excused_count() const { return excused_count_; }
    /// Where they ended, oldest first.
    [[nodiscard]] const std::vector<ExcusedEnds>& excused() const { return excused_; }
    /// What attempts that have ended have cost, as budget.cost counts it; 0 without such a budget.
    [[nodiscard]] double paid() const;
    /// Its spaces and samplers before the present ones, oldest first.
    [[nodiscard]] const std::vector<StudyEpoch>& earlier() const { return earlier_; }
    [[nodiscard]] const std::deque<Trial>& trials() const { return trials_; }
    [[nodiscard]] const Counts& counts() const { return counts_; }
    [[nodiscard]] std::size_t count(TrialState state) const {
        return counts_[static_cast<std::size_t>(state)];
    }
    /// The complete feasible trial with the best value, the earliest of equals; nullptr if there is
    /// none, and for a study with several objectives.
    [[nodiscard]] const Trial* best() const;
    /// The complete feasible trials that no other one dominates, by number: best() where there is
    /// one objective, the Pareto front where there are several.
    [[nodiscard]] std::vector<const Trial*> best_trials() const;
    /// Who may be continued, in population based training.
    [[nodiscard]] const Population& population() const { return population_; }
    /// Grows when best_trials() changes.
    [[nodiscard]] std::uint64_t best_version() const { return best_version_; }
    /// Numbers of running trials.
    [[nodiscard]] const std::set<std::uint64_t>& running() const { return running_; }
    /// Numbers of queued trials.
    [[nodiscard]] const std::set<std::uint64_t>& queued() const { return queued_; }
    [[nodiscard]] Trial* find(std::uint64_t number);
    [[nodiscard]] const Trial* find(std::uint64_t number) const;
    /// Trials whose last attempt the ask with this request id started, oldest first; not those that
    /// wait again.
    [[nodiscard]] std::vector<Trial*> started_by_request(const std::string& request_id);
    /// The trial made by the enqueue with this request id; nullptr if there was none.
    [[nodiscard]] Trial* enqueued_by_request(const std::string& request_id);

    /// The seed that a trial's command gets; the same in each attempt, below 2^31 so that every
    /// generator takes it.
    [[nodiscard]] std::uint64_t trial_seed(std::uint64_t number) const;

    // --- trials ---

    /// What a trial needs where it runs. What is to be learnt is as much as trials before it used,
    /// once a few have ended; until then memory is not counted, and GPUs are whole.
    [[nodiscard]] TrialNeeds needs() const;
    /// What the attempt of a running trial says of its memory at its end. To be called before
    /// settle.
    void note_peaks(Trial& trial, const FinishRequest& request);
    /// The same of a trial that was restored.
    void note_peaks(const Trial& trial);

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
    /// Whether the budget has a trial left to enqueue. Errors: kResourceExhausted.
    [[nodiscard]] Result<void> check_enqueue() const;
    /// Notes that an enqueue with these values and this request id made the trial.
    void note_enqueued(Trial& trial, const Point& fixed, std::string enqueue_request);

    // --- suggestions made elsewhere (tuner/study/suggestion.h) ---

    /// From now on nothing here computes a suggestion: begin_suggestion and end_suggestion bring
    /// them in. warm_up is not to be called any more.
    void suggest_elsewhere();
    /// True while a suggestion is being made elsewhere.
    [[nodiscard]] bool is_suggesting() const { return work_.has_value(); }
    /// What a suggestion takes, with at most `news_max` observations: without all of them the work
    /// only brings the model closer, and another one has to follow. REQUIRES: !is_suggesting().
    /// Cost: O(news).
    [[nodiscard]] SuggestionWork begin_suggestion(const SuggestionWish& wish, std::size_t news_max);
    /// False: the study got another sampler meanwhile, and what was made counts for nothing.
    [[nodiscard]] bool end_suggestion(const SuggestionWork& work, const Suggestion& made);
    /// Adds the trial that was suggested; it waits to be started. REQUIRES: end_suggestion said
    /// true, made.point. Errors: kInvalidParameterValue when a given point is forbidden.
    Result<Trial*> add_suggested(const SuggestionWork& work, const Suggestion& made,
                                 std::int64_t now_ms);
    /// True if only its model can tell whether the study is completed; see SuggestionWish::kLook.
    [[nodiscard]] bool needs_look();

    /// The attempt of a running trial ended without a result: the trial waits for the next one.
    void requeue(Trial& trial, std::string reason, std::int64_t now_ms);

    /// Ends a queued or running trial for good.
    void finish(Trial& trial, TrialEnd end);

    /// Ends a running trial as complete. `reason`: a remark of the caller, mostly empty.
    void complete(Trial& trial, const TrialResult& result, std::string reason, std::int64_t now_ms);

    /// What an agent's finish means for a running trial: requeue or finish, by the outcome, the
    /// metric, and the retry rules of the study.
    void settle(Trial& trial, const FinishRequest& request, std::int64_t now_ms);

    /// As settle for an agent that is gone. After kLostAttemptsMax of them the trial fails.
    void lose_attempt(Trial& trial, std::string reason, std::int64_t now_ms);

    /// A row of a metric that an attempt of a trial logged; rows come in the order of the log.
    /// Nothing: the study does not measure it. kPrune: the pruner wants the attempt stopped, which
    /// is the running one.
    std::optional<Verdict> report(Trial& trial, std::string_view metric, const Objective::Row& row,
                                  int attempt);

    // --- the study ---

    void set_state(StudyState state, std::string note = {});

    /// Takes what a resumed study may change (everything but space, metric, warm start and seed).
    /// REQUIRES: differences() is empty.
    void reconfigure(StudyConfig config);

    /// Points of the first trials, brought from one space into another.
    struct Extension {
        Space from = {};
        std::vector<Point> points = {};
        std::vector<Point> fixed = {};
    };
    /// Brings the trial of the next number with it, which need not be the study's own. Errors:
    /// kResourceConflict naming what does not fit.
    static Result<void> extend_trial(const Point& point, const Point& fixed, const Space& to,
                                     Extension& extension);
    /// As reconfigure, with another space too: trials that exist get the `init` of parameters that
    /// are new. REQUIRES: metric and seed are the same; `begun` leads to the space of `config`; it
    /// counts as far as it comes from the present one. Errors: kResourceConflict naming what does
    /// not fit (then nothing changes). Cost: O(trials), most of it for those that `begun` lacks.
    Result<void> extend(StudyConfig config, Extension begun);

    void rename(const std::string& name) {
        identity_.name = config_.study = name;
        shared_config_.reset();
    }

    /// Its experiment was deleted: nothing of it can be written, and no trial starts. Not kept in
    /// the journal: the store knows.
    void set_experiment_deleted(bool is_deleted) { is_experiment_deleted_ = is_deleted; }
    [[nodiscard]] bool is_experiment_deleted() const { return is_experiment_deleted_; }

    /// Whether somebody works on it, as its registry sees it now: what is_attended() gives.
    void set_attended(bool is_attended) { is_attended_ = is_attended; }
    [[nodiscard]] bool is_attended() const { return is_attended_; }
    /// What its MLflow run says of that: RUNNING, or SCHEDULED while nobody works on it.
    void set_shown_attended(bool is_shown) { is_shown_attended_ = is_shown; }
    [[nodiscard]] bool is_shown_attended() const { return is_shown_attended_; }
    /// A client or an agent has said something of it.
    void note_activity(std::int64_t now_ms) { last_activity_ms_ = now_ms; }
    /// 0: nobody has, since the registry was opened.
    [[nodiscard]] std::int64_t last_activity_ms() const { return last_activity_ms_; }

    /// Grows with each change that was made known; for clients that wait for the next one.
    [[nodiscard]] std::int64_t version() const { return version_; }
    void touch() { ++version_; }

    /// What stands in the way of going on with `config`: one sentence a difference in space, metric
    /// or seed, e.g. "space.lr: float 1e-05..0.1 log, was float 1e-04..0.1 log".
    [[nodiscard]] std::vector<std::string> differences(const StudyConfig& config) const;

    /// The budget that is used at `now_ms`, if any, besides that of the number of trials: no trial
    /// starts, and those that run are to be stopped.
    [[nodiscard]] std::optional<BudgetWatch::Over> over(std::int64_t now_ms);
    /// Why this running trial must stop: it cost more than one may.
    [[nodiscard]] std::optional<std::string> exceeds_budget(const Trial& trial);
    /// When the budget of time ends, or that of the running trials' time if it is sooner; nothing:
    /// never, as things are.
    [[nodiscard]] std::optional<std::int64_t> deadline_ms(std::int64_t now_ms);

    /// Moves a running study whose budget or space is used and whose trials have all ended to
    /// completed.
    /// True if it did.
    bool complete_if_done(std::int64_t now_ms);

    // --- registration ---

    /// True from its completion on until the model of its best trial is registered, or was found to
    /// be impossible to register.
    [[nodiscard]] bool wants_registration() const;
    [[nodiscard]] const std::optional<Registration>& registration() const { return registration_; }
    void set_registration(Registration registration) { registration_ = std::move(registration); }
    /// What was impossible is tried again.
    void forget_failed_registration() {
        if (registration_ && !registration_->error.empty()) registration_.reset();
    }

    // --- a beginning that fails ---

    /// Stops a running study whose first trials fail alike (stop_after_failures). True if it did;
    /// the caller cancels what waits and runs.
    bool stop_if_failing();

    /// True once after the first success, which makes that the failures before it use up no budget:
    /// the caller writes the study.
    [[nodiscard]] bool take_excused() { return std::exchange(has_excused_, false); }

    /// For a study that runs again after a rest: failures before the first success use up no budget
    /// (nor does what stop_if_failing() had cancelled), and their points are queued again. The
    /// queued trials. Nothing where stop_after_failures is 0. Cost: O(trials), and a suggestion
    /// each.
    [[nodiscard]] std::vector<Trial*> excuse_failures(std::int64_t now_ms);

    // --- for a replay ---

    /// A sampler as the study would make it for this space and configuration, without observations.
    [[nodiscard]] std::unique_ptr<Sampler> new_sampler(const Space& space,
                                                       const SamplerConfig& config) const;
    /// What the sampler observes of a trial.
    [[nodiscard]] Observation observation_of(const Trial& trial) const;

    // --- rebuilding after a restart ---

    /// Brings a trial of the journal into the present space. Errors: kInvalidParameterValue when
    /// its point is none of that space.
    [[nodiscard]] Result<void> bring_up(Trial& trial) const;

    /// Takes a trial from the journal. A missing one becomes a queued trial. REQUIRES: in order of
    /// number; the point lies in the space.
    void restore(Trial trial);
    void restore_state(StudyState state, std::string note, std::int64_t started_ms);
    void restore_end(StudyEnd end, std::vector<StudyEpoch> earlier);
    /// Before its trials.
    void restore_excused(std::vector<ExcusedEnds> excused) { excused_ = std::move(excused); }

    /// Its pruner, and what that has not observed yet after a restart or a change.
    [[nodiscard]] const PrunerFeed& pruner() const { return pruner_; }
    /// The objective's rows of one trial, for replay_history. Any order of trials.
    void replay_reports(std::uint64_t number, const std::vector<Objective::Row>& rows) {
        pruner_.add_reports(trials_[number], config_.metric.name, rows);
    }
    /// As PrunerFeed::replay. REQUIRES: the reports of all trials were given.
    bool replay_history(std::size_t events_max) { return pruner_.replay(trials_, events_max); }

    /// Tells the sampler up to `trials_max` more of the trials it does not know yet, which
    /// otherwise happens all at once at the first suggestion. True once it knows all.
    bool warm_up(std::size_t trials_max);

private:
    void roll_back(Trial& trial, std::string_view metric, const Objective::Row& row, int attempt);
    [[nodiscard]] bool is_space_used();
    [[nodiscard]] bool is_out_of_time(std::int64_t now_ms) const;
    [[nodiscard]] std::vector<double> running_costs(std::int64_t now_ms) const;
    [[nodiscard]] bool lacks_room(std::int64_t now_ms);
    [[nodiscard]] const Point& next_point();
    BudgetWatch& watch();
    FailureWatch& failures();
    [[nodiscard]] bool is_excused(const Trial& trial) const;
    [[nodiscard]] std::size_t success_count() const {
        return count(TrialState::kComplete) + count(TrialState::kPruned);
    }
    [[nodiscard]] std::int64_t last_failure() const;
    void excuse_before_success();
    void note_start(std::int64_t start_ms);
    [[nodiscard]] bool has_used_trials() const {
        return config_.budget.trials && trials_.size() - excused_count_ >= *config_.budget.trials;
    }
    void forget_models();
    void complete_with(StudyEnd end, std::string note);
    Sampler& sampler();
    void tell_sampler(const Trial& trial);
    void move(Trial& trial, TrialState state);
    void consider_best(const Trial& trial);
    void restore_unwritten();
    void restore_next(Trial trial, bool is_written);
    Trial& add_trial(Point point, std::optional<Origin> origin, std::int64_t asked_at,
                     std::int64_t now_ms);
    Trial& add_next(std::int64_t now_ms);
    void finish_done(Trial& trial, std::int64_t now_ms);
    void retry_or_fail(Trial& trial, RetryOn why, std::string reason, std::int64_t now_ms);

    StudyIdentity identity_;
    StudyConfig config_;
    mutable std::shared_ptr<const StudyConfig> shared_config_;  // nothing: not asked for since
    StudyState state_ = StudyState::kRunning;
    std::string note_;
    std::string obstacle_;
    StudyEnd end_ = StudyEnd::kNone;
    std::optional<Registration> registration_;
    std::vector<StudyEpoch> earlier_;
    std::int64_t started_ms_ = 0;
    std::int64_t last_end_ms_ = 0;
    std::int64_t version_ = 0;
    std::int64_t log_position_ = 0;
    std::deque<Trial> trials_;  // addresses are stable
    Counts counts_{};
    std::set<std::uint64_t> queued_;
    std::set<std::uint64_t> running_;
    Population population_;
    std::vector<std::uint64_t> best_;  // numbers of best_trials()
    std::uint64_t best_version_ = 0;
    std::unordered_map<std::string, std::vector<std::uint64_t>> by_request_;
    std::unordered_map<std::string, std::uint64_t> by_enqueue_;
    enum class Work { kPoint, kOther };
    bool suggests_elsewhere_ = false;
    std::optional<Work> work_;            // what is being made elsewhere, with the sampler
    std::uint64_t model_version_ = 0;     // grows when the sampler becomes another one
    std::vector<std::uint64_t> changed_;  // trials that it knows, and that have ended since
    std::int64_t exhausted_at_ = -1;      // the log position of is_exhausted_
    bool is_exhausted_ = false;
    std::shared_ptr<Sampler> sampler_;
    std::size_t sampler_knows_ = 0;         // this many of the first trials
    Point next_point_;                      // what the sampler suggests at next_at_
    std::optional<Origin> next_origin_;     // the same
    std::int64_t next_at_ = -1;             // the log position at which it was asked; -1: never
    std::optional<BudgetWatch> watch_;      // nothing: to be made from the trials
    std::optional<KnownPoints> known_;      // the same
    std::optional<FailureWatch> failures_;  // the same
    PeakMemory memory_;
    PeakMemory gpu_memory_;
    std::vector<ExcusedEnds> excused_;
    std::size_t excused_count_ = 0;
    bool has_excused_ = false;  // since it was last asked
    bool is_experiment_deleted_ = false;
    bool is_attended_ = true;
    bool is_shown_attended_ = true;
    std::int64_t last_activity_ms_ = 0;
    PrunerFeed pruner_;
};

/// The sentence for a trial that ended well without its metric. `is_unheard`: it is known that no
/// request came with its credential.
[[nodiscard]] std::string metric_never_arrived(const std::string& metric,
                                               const std::vector<std::string>& arrived,
                                               bool is_unheard = false);

}  // namespace tune::tuner
