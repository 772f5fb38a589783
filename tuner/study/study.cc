// The state machine of a study; its invariants stand in study.h. Each change of a trial checks the
// state that it leaves, so a call that comes too late or twice changes nothing. The model and the
// pruner are built when first needed and observe the trials in log order; after a restart the same
// calls in the same order give the same state, which the restart tests compare.
//
// What is derived from the configuration (model, pruner, the budget's sums) is dropped on a change
// and built again from the trials when it is next needed.

#include "tuner/study/study.h"

#include <algorithm>
#include <memory>
#include <tuple>

#include "base/check.h"
#include "tuner/sampler/pbt/pbt_options.h"

namespace tune::tuner {
namespace {

/// By the wall clock, since it goes on over restarts; that may have been set back meanwhile.
std::int64_t ran_so_far(const Trial& trial, std::int64_t now_ms) {
    return std::max<std::int64_t>(now_ms - trial.attempt_start_ms, 0);
}

/// A trial that ends keeps its last report; that is the value of a pruned one with one objective.
void keep_last_report(Trial& trial, const StudyConfig& config) {
    if (const auto last = trial.progress->metrics.first().last()) {
        trial.last_step = last->step;
        trial.last_value = last->value;
    }
    const bool is_single = config.more_metrics.empty();
    if (is_single && trial.state == TrialState::kPruned && !trial.value && trial.last_step)
        trial.value = trial.last_value;
}

}  // namespace

Study::Study(StudyIdentity identity, StudyConfig config)
    : definition_(std::move(identity), std::move(config)),
      front_(this->config(), trials_),
      beginning_(this->config(), trials_, log_),
      budget_(definition_, trials_, beginning_),
      suggestions_(definition_, trials_, log_),
      needs_(definition_, trials_),
      pruner_(make_pruner(this->config().pruner, this->config().metric.goal, this->config().study)),
      registration_(this->config(), status_, front_) {}

// --- trials that start ---------------------------------------------------------------------------

bool Study::may_start(std::int64_t now_ms) {
    if (state() != StudyState::kRunning || is_experiment_deleted_) return false;
    if (budget_.over(now_ms) || budget_.lacks_room(now_ms) || budget_.is_full()) return false;
    if (!trials_.queued().empty()) return true;
    return !budget_.has_used_trials() && !suggestions_.is_space_used();
}

/// With a budget of cost trials start one at a time, since each start changes the answer.
std::size_t Study::startable(std::int64_t now_ms, std::size_t most) {
    if (!may_start(now_ms)) return 0;
    const BudgetConfig& budget = config().budget;
    if (budget.parallel)
        most =
            std::min(most, static_cast<std::size_t>(*budget.parallel) - trials_.running().size());
    if (budget.cost) return std::min<std::size_t>(most, 1);
    std::size_t count = trials_.queued().size();
    if (can_be_exhausted(config().space, config().sampler))
        count = std::max<std::size_t>(count, 1);
    else if (const auto left = budget_.trials_left())
        count += *left;
    else
        count = most;
    return std::min(count, most);
}

Trial& Study::start(TrialStart start) {
    TUNE_CHECK(may_start(start.now_ms), "a trial was started that the study does not allow");
    Trial* const waiting = trials_.next_queued();
    Trial& trial = waiting != nullptr ? *waiting : add_next(start.now_ms);
    trials_.note_asked(trial, std::move(start.ask_request));
    trials_.move(trial, TrialState::kRunning);
    ++trial.attempt;
    trial.attempt_start_ms = start.now_ms;
    if (trial.start_ms == 0) trial.start_ms = start.now_ms;
    budget_.begin_time(start.now_ms);
    trial.worker = std::move(start.worker);
    trial.reason.clear();
    TrialProgress& progress = *trial.progress;
    progress.holder = std::move(start.holder);
    progress.directive.reset();
    progress.is_unheard = false;
    progress.is_unmarked = false;
    return trial;
}

Result<Trial*> Study::enqueue(const Point& fixed, std::string enqueue_request,
                              std::int64_t now_ms) {
    TUNE_TRY_VOID(budget_.check_enqueue());
    NextPoint made = suggestions_.with(fixed);
    TUNE_TRY_VOID(config().space.check(made.point));
    Trial& trial = add_trial(std::move(made), log_.next(), now_ms);
    note_enqueued(trial, fixed, std::move(enqueue_request));
    return &trial;
}

Result<Trial*> Study::add_suggested(const SuggestionWork& work, const Suggestion& made,
                                    std::int64_t now_ms) {
    TUNE_CHECK(made.point && work.number == trials_.size(), "trials are added in their order");
    if (work.wish.what == SuggestionWish::For::kGiven)
        TUNE_TRY_VOID(config().space.check(*made.point));
    return &add_trial({*made.point, made.origin}, work.position, now_ms);
}

Trial& Study::add_next(std::int64_t now_ms) {
    NextPoint made = suggestions_.next();
    return add_trial(std::move(made), log_.next(), now_ms);
}

Trial& Study::add_trial(NextPoint made, std::int64_t asked_at, std::int64_t now_ms) {
    Trial fresh;
    fresh.number = trials_.size();
    fresh.point = std::move(made.point);
    fresh.origin = made.origin;
    fresh.created_ms = now_ms;
    fresh.asked_at = asked_at;
    fresh.progress = std::make_unique<TrialProgress>(config());
    fresh.epoch = definition_.epoch();
    Trial& trial = trials_.add(std::move(fresh));
    population_.note(trial);
    suggestions_.trial_added();
    return trial;
}

// --- trials that need not run --------------------------------------------------------------------

std::vector<Trial*> Study::reuse_known(std::int64_t now_ms) {
    std::vector<Trial*> reused;
    if (config().sampler.duplicates != Duplicates::kReuse ||
        !can_be_exhausted(config().space, config().sampler))
        return reused;
    if (!known_) {
        known_.emplace();
        for (const Trial& trial : trials_) known_->add(trial);
    }
    while (reused.size() < kReusedMax && may_start(now_ms)) {
        Trial* const waiting = trials_.next_queued();
        if (waiting != nullptr && waiting->attempt > 0) break;  // it is being tried already
        // Another one is looked at when it waits.
        if (waiting == nullptr && suggestions_.is_elsewhere()) break;
        const auto known =
            known_->find(waiting != nullptr ? waiting->point : suggestions_.next().point);
        if (!known) break;
        Trial& trial = waiting != nullptr ? *waiting : add_next(now_ms);
        const Trial& from = trials_[*known];
        trial.reused_from = from.number;
        trial.start_ms = now_ms;
        budget_.begin_time(now_ms);
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

// --- the end of an attempt -----------------------------------------------------------------------

void Study::requeue(Trial& trial, std::string reason, std::int64_t now_ms) {
    TUNE_CHECK(trial.state == TrialState::kRunning, "only a running attempt can end");
    budget_.pay_attempt(trial, now_ms);
    trial.ran_ms += ran_so_far(trial, now_ms);
    trials_.move(trial, TrialState::kQueued);
    trial.reason = std::move(reason);
    trial.progress->holder = {};
    trial.progress->directive.reset();
    trial.progress->profile.reset();
}

void Study::finish(Trial& trial, TrialEnd end) {
    budget_.pay_attempt(trial, end.now_ms);
    if (trial.state == TrialState::kRunning) trial.ran_ms += ran_so_far(trial, end.now_ms);
    trials_.end(trial, end.state, end.now_ms);
    trial.value = end.value;
    trial.more_values = std::move(end.more_values);
    trial.constraint_values = std::move(end.constraint_values);
    trial.reason = std::move(end.reason);
    trial.ended_at = log_.next();
    keep_last_report(trial, config());
    trial.progress.reset();
    budget_.trial_ended(trial);
    if (beginning_.trial_ended(trial)) budget_.recount();
    if (known_) known_->add(trial);
    front_.consider(trial);
    population_.note(trial);
    suggestions_.trial_ended(trial);
    pruner_.finish(trial);
}

void Study::settle(Trial& trial, const FinishRequest& request, std::int64_t now_ms) {
    settle_as(trial, attempt_end(trial, request, config(), now_ms), now_ms);
}

void Study::lose_attempt(Trial& trial, std::string reason, std::int64_t now_ms) {
    settle_as(trial, lost_attempt_end(trial, std::move(reason), now_ms), now_ms);
}

void Study::settle_as(Trial& trial, AttemptEnd end, std::int64_t now_ms) {
    if (end.end) return finish(trial, *std::move(end.end));
    requeue(trial, std::move(end.reason), now_ms);
}

// --- reports -------------------------------------------------------------------------------------

std::optional<Verdict> Study::report(Trial& trial, std::string_view metric,
                                     const Objective::Row& row, int attempt) {
    roll_back(trial, metric, row, attempt);
    if (!trial.progress->metrics.add(metric, row)) return std::nullopt;
    const bool is_running = trial.state == TrialState::kRunning && trial.attempt == attempt;
    if (metric != config().metric.name || !is_running) return Verdict::kKeep;
    return pruner_.report(trial.number, row);
}

/// The first row of a later attempt says from which step it goes on; see roll_back.h.
void Study::roll_back(Trial& trial, std::string_view metric, const Objective::Row& row,
                      int attempt) {
    const Objective::Forgotten forgotten =
        trial.progress->metrics.roll_back(metric, row.step, attempt);
    if (forgotten == Objective::Forgotten::kNothing) return;
    add_roll_back(trial.roll_backs, {std::string(metric), row.step, row.timestamp_ms, attempt});
    trial.progress->is_rolled_back = true;
    if (metric != config().metric.name || forgotten != Objective::Forgotten::kAll) return;
    pruner_.begin_anew(trial.number);
}

// --- the study's states --------------------------------------------------------------------------

void Study::set_state(StudyState state, std::string note) {
    status_ = {.state = state, .note = std::move(note)};
}

bool Study::complete_if_done(std::int64_t now_ms) {
    if (state() != StudyState::kRunning || !trials_.running().empty()) return false;
    if (suggestions_.expects_point()) return false;
    auto end = ends_by(now_ms);
    if (!end) return false;
    status_ = {.state = StudyState::kCompleted, .note = std::move(end->note), .end = end->why};
    return true;
}

/// What ends a study that runs no trial now; nothing: it goes on.
std::optional<BudgetWatch::Over> Study::ends_by(std::int64_t now_ms) {
    using Over = BudgetWatch::Over;
    const bool is_waiting = !trials_.queued().empty();
    auto used = budget_.over(now_ms);
    // A target that is reached with the last trial is what the user wants to hear of.
    if (used && used->why == StudyEnd::kTarget) return used;
    if (!is_waiting && budget_.has_used_trials()) return Over{StudyEnd::kTrials, {}};
    if (!is_waiting && suggestions_.is_space_used()) {
        const auto* pbt = config().sampler.get_if<PbtOptions>();
        if (pbt == nullptr)
            return Over{StudyEnd::kSpace, "every point of the space has been tried"};
        return Over{StudyEnd::kSteps, "every member of the population has trained to step " +
                                          std::to_string(pbt->max)};
    }
    if (used || !budget_.lacks_room(now_ms)) return used;
    return Over{StudyEnd::kCost, "the remaining cost budget is less than the cost of a trial"};
}

bool Study::stop_if_failing() {
    if (state() != StudyState::kRunning) return false;
    auto why = beginning_.should_stop();
    if (!why) return false;
    status_ = {.state = StudyState::kStopped, .note = *std::move(why), .end = StudyEnd::kFailures};
    beginning_.stop();
    return true;
}

std::vector<Trial*> Study::excuse_failures(std::int64_t now_ms) {
    std::vector<Trial*> again;
    const auto points = beginning_.excuse();
    if (!points) return again;
    budget_.forget();
    if (trials_.success_count() == 0 && trials_.running().empty()) budget_.begin_time_anew();
    // The members of a population are made up for by their sampler.
    if (config().sampler.get_if<PbtOptions>() != nullptr) return again;
    forget_models();  // one that is being asked elsewhere was told of fewer trials
    for (const Point& point : *points) {
        if (!budget_.check_enqueue()) break;         // a smaller budget than before
        if (!config().space.check(point)) continue;  // the space has grown
        Trial& trial = add_trial({point, std::nullopt}, log_.next(), now_ms);
        note_enqueued(trial, point, {});
        again.push_back(&trial);
    }
    return again;
}

// --- another configuration -----------------------------------------------------------------------

void Study::forget_models() {
    suggestions_.forget();
    budget_.forget();
    known_.reset();
}

void Study::reconfigure(StudyConfig config) {
    const auto until = trials_.empty() ? std::nullopt : std::optional(log_.position());
    const StudyDefinition::Changes changes = definition_.replace(std::move(config), until);
    if (changes.model) forget_models();
    budget_.forget();
    beginning_.forget();
    if (!changes.pruner) return;
    const StudyConfig& now = this->config();
    pruner_.replace(make_pruner(now.pruner, now.metric.goal, now.study),
                    !trials_.empty() && !now.pruner.is_none());
}

Result<void> Study::extend(StudyConfig config, Extension begun) {
    if (!begun.leads(this->config().space, config.space) || begun.count() > trials_.size())
        begun = Extension(this->config().space, config.space);
    for (std::size_t number = begun.count(); number < trials_.size(); ++number)
        TUNE_TRY_VOID(begun.add(trials_[number].point, trials_[number].fixed));
    reconfigure(std::move(config));
    for (Trial& trial : trials_) {
        std::tie(trial.point, trial.fixed) = begun.take(trial.number);
        trial.epoch = definition_.epoch();
    }
    return {};
}

// --- rebuilding ----------------------------------------------------------------------------------

void Study::restore(StudyRecord record) {
    status_ = std::move(record.status);
    budget_.restore(record.started_ms);
    // Positions of suggestions that came to nothing lie there too, and are not given again.
    if (!record.earlier.empty()) log_.reach(record.earlier.back().until);
    definition_.restore(std::move(record.earlier));
    beginning_.restore(std::move(record.excused));
}

void Study::restore(Trial trial) {
    TUNE_CHECK(trial.number >= trials_.size(), "trials are restored in order");
    while (trials_.size() < trial.number) restore_unwritten();
    restore_next(std::move(trial), true);
}

/// The server ended before the trial of this number was on disk, though a later one is. Nobody
/// has observed it; it waits to be run.
void Study::restore_unwritten() {
    Trial trial;
    trial.number = trials_.size();
    trial.point = definition_.new_sampler(config().space, config().sampler)->suggest(trial.number);
    trial.asked_at = log_.next();
    trial.epoch = definition_.epoch();
    trial.is_redrawn = true;
    restore_next(std::move(trial), false);
}

void Study::restore_next(Trial trial, bool is_written) {
    log_.reach(std::max(trial.asked_at, trial.ended_at));
    trial.sync = {.run_requested = is_written, .run_confirmed = is_written};
    if (!is_ended(trial.state)) {
        auto progress = std::make_unique<TrialProgress>(config());
        if (trial.progress) progress->holder = trial.progress->holder;
        trial.progress = std::move(progress);
    }
    const Trial& restored = trials_.add(std::move(trial));
    beginning_.restored(restored);
    budget_.restored(restored);
    known_.reset();
    front_.consider(restored);
    population_.note(restored);
    if (!config().pruner.is_none()) pruner_.fall_behind();
}

}  // namespace tune::tuner
