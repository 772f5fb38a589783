// The state machine of a study; its invariants stand in study.h. Each change of a trial checks the
// state that it leaves, so a call that comes too late or twice changes nothing. The sampler and the
// pruner are built when first needed and observe the trials in log order; after a restart the same
// calls in the same order give the same state, which the restart tests compare.

#include "tuner/study/study.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_set>

#include "base/text/counted.h"
#include "tuner/space/expression/rules.h"
#include "tuner/study/journal/warm_start.h"

namespace tune::tuner {
namespace {

constexpr std::array<std::string_view, 4> kStudyStateNames = {"running", "paused", "stopped",
                                                              "completed"};

/// Steele et al., "Fast splittable pseudorandom number generators", 2014.
std::uint64_t splitmix64(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/// What else is said of a space, and must not change under its trials.
void add_rule_differences(const Space& was, const Space& now, std::vector<std::string>& found) {
    const auto texts_of = [](const Space& space) {
        return space.rules() != nullptr ? space.rules()->texts() : RuleTexts();
    };
    if (texts_of(now).forbid != texts_of(was).forbid) found.push_back("forbid has other clauses");
    if (texts_of(now).derive != texts_of(was).derive) found.push_back("derive has other values");
}

/// What makes values of two studies incomparable. What a step is called does not.
void add_metric_differences(const StudyConfig& was, const StudyConfig& now,
                            std::vector<std::string>& found) {
    const std::vector<MetricConfig> before = metrics_of(was);
    const std::vector<MetricConfig> after = metrics_of(now);
    if (before.size() != after.size()) {
        const bool is_one = after.size() == 1;
        found.push_back((is_one ? "there is " : "there are ") +
                        counted(static_cast<std::int64_t>(after.size()), "objective") +
                        (is_one ? ", there were " : ", were ") + std::to_string(before.size()));
        return;
    }
    for (std::size_t i = 0; i < before.size(); ++i) {
        const std::string of = before.size() == 1 ? "" : " of '" + after[i].name + "'";
        if (after[i].name != before[i].name)
            found.push_back("metric is '" + after[i].name + "', was '" + before[i].name + "'");
        if (after[i].goal != before[i].goal)
            found.push_back("goal" + of + " is " + std::string(goal_name(after[i].goal)) +
                            ", was " + std::string(goal_name(before[i].goal)));
        if (aggregation_name(after[i]) != aggregation_name(before[i]))
            found.push_back("the metric" + of + " is taken as " + aggregation_name(after[i]) +
                            ", was " + aggregation_name(before[i]));
    }
    if (now.constraints != was.constraints)
        found.push_back("constraints are " + to_text(to_json(now.constraints)) + ", were " +
                        to_text(to_json(was.constraints)));
}

/// By the wall clock, since it goes on over restarts; that may have been set back meanwhile.
std::int64_t ran_so_far(const Trial& trial, std::int64_t now_ms) {
    return std::max<std::int64_t>(now_ms - trial.attempt_start_ms, 0);
}

}  // namespace

std::string_view study_state_name(StudyState state) {
    return kStudyStateNames.at(static_cast<std::size_t>(state));
}

Result<StudyState> study_state_from_name(std::string_view name) {
    for (std::size_t i = 0; i < kStudyStateNames.size(); ++i)
        if (kStudyStateNames[i] == name) return static_cast<StudyState>(i);
    return Error{Code::kInvalidParameterValue, "unknown study state '" + std::string(name) +
                                                   "'; known: running, paused, stopped, completed"};
}

std::string metric_never_arrived(const std::string& metric, const std::vector<std::string>& arrived,
                                 bool is_unheard) {
    std::string text = "metric '" + metric + "' never arrived: the command succeeded, but ";
    if (arrived.empty()) {
        text += "reported no metric";
    } else {
        text += "reported only ";
        for (std::size_t i = 0; i < arrived.size(); ++i)
            text += (i == 0 ? "'" : ", '") + arrived[i] + "'";
    }
    text += ". Print a line  tune: {\"" + metric +
            "\": 0.5}  on stdout, log it with an MLflow client (the environment names the run), or "
            "give a pattern with --scrape.";
    if (is_unheard && arrived.empty())
        text +=
            " If it does log with MLflow, then elsewhere: no request with its "
            "MLFLOW_TRACKING_TOKEN reached this server; take mlflow.set_tracking_uri out.";
    return text;
}

Study::Study(StudyIdentity identity, StudyConfig config)
    : identity_(std::move(identity)),
      config_(std::move(config)),
      pruner_(make_pruner(config_.pruner, config_.metric.goal, config_.study)) {}

const Trial* Study::best() const {
    return best_.empty() || !config_.more_metrics.empty() ? nullptr : &trials_[best_.front()];
}

std::vector<const Trial*> Study::best_trials() const {
    std::vector<const Trial*> trials;
    for (const std::uint64_t number : best_) trials.push_back(&trials_[number]);
    return trials;
}

Trial* Study::find(std::uint64_t number) {
    return number < trials_.size() ? &trials_[number] : nullptr;
}

const Trial* Study::find(std::uint64_t number) const {
    return number < trials_.size() ? &trials_[number] : nullptr;
}

std::vector<Trial*> Study::started_by_request(const std::string& request_id) {
    std::vector<Trial*> started;
    const auto found = by_request_.find(request_id);
    if (request_id.empty() || found == by_request_.end()) return started;
    for (const std::uint64_t number : found->second) {
        Trial& trial = trials_[number];
        // Lost since then, it is another's now or will be.
        const bool is_its_own =
            trial.ask_request == request_id && trial.state != TrialState::kQueued;
        if (is_its_own) started.push_back(&trial);
    }
    return started;
}

Trial* Study::enqueued_by_request(const std::string& request_id) {
    const auto found = by_enqueue_.find(request_id);
    return request_id.empty() || found == by_enqueue_.end() ? nullptr : &trials_[found->second];
}

std::uint64_t Study::trial_seed(std::uint64_t number) const {
    return splitmix64(splitmix64(identity_.seed) ^ number) >> 33;
}

// --- trials --------------------------------------------------------------------------------------

bool Study::may_start(std::int64_t now_ms) {
    if (state_ != StudyState::kRunning || is_experiment_deleted_) return false;
    if (over(now_ms) || lacks_room(now_ms)) return false;
    if (config_.budget.parallel &&
        running_.size() >= static_cast<std::size_t>(*config_.budget.parallel))
        return false;
    if (!queued_.empty()) return true;
    if (has_used_trials()) return false;
    return !is_space_used();
}

/// Most studies know the answer without building their sampler.
bool Study::is_space_used() {
    if (trials_.empty() || !can_be_exhausted(config_.space, config_.sampler)) return false;
    if (suggests_elsewhere_) return exhausted_at_ == log_position_ && is_exhausted_;
    return sampler().is_exhausted();
}

Trial& Study::start(TrialStart start) {
    TUNE_CHECK(may_start(start.now_ms), "a trial was started that the study does not allow");
    const bool is_waiting = !queued_.empty();
    Trial& trial = is_waiting ? trials_[*queued_.begin()] : add_next(start.now_ms);
    if (!start.ask_request.empty()) {
        by_request_[start.ask_request].push_back(trial.number);
        trial.ask_request = std::move(start.ask_request);
    }
    move(trial, TrialState::kRunning);
    ++trial.attempt;
    trial.attempt_start_ms = start.now_ms;
    if (trial.start_ms == 0) trial.start_ms = start.now_ms;
    if (started_ms_ == 0) started_ms_ = start.now_ms;
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
    TUNE_TRY_VOID(check_enqueue());
    Point point = sampler().suggest(trials_.size(), fixed);
    TUNE_TRY_VOID(config_.space.check(point));
    const std::optional<Origin> origin = sampler().origin(trials_.size());
    Trial& trial = add_trial(std::move(point), origin, ++log_position_, now_ms);
    note_enqueued(trial, fixed, std::move(enqueue_request));
    return &trial;
}

Result<void> Study::check_enqueue() const {
    if (!has_used_trials()) return {};
    const auto budget = static_cast<std::int64_t>(*config_.budget.trials);
    return Error{Code::kResourceExhausted, "study '" + name() + "' has used its budget of " +
                                               counted(budget, "trial") +
                                               "; raise budget.trials to enqueue more"};
}

void Study::note_enqueued(Trial& trial, const Point& fixed, std::string enqueue_request) {
    trial.fixed = fixed;
    if (!enqueue_request.empty()) by_enqueue_[enqueue_request] = trial.number;
    trial.enqueue_request = std::move(enqueue_request);
}

Trial& Study::add_next(std::int64_t now_ms) {
    Point point = next_point();
    return add_trial(std::move(point), next_origin_, ++log_position_, now_ms);
}

Trial& Study::add_trial(Point point, std::optional<Origin> origin, std::int64_t asked_at,
                        std::int64_t now_ms) {
    Trial& trial = trials_.emplace_back();
    trial.number = trials_.size() - 1;
    trial.point = std::move(point);
    trial.origin = origin;
    trial.created_ms = now_ms;
    trial.asked_at = asked_at;
    trial.progress = std::make_unique<TrialProgress>(config_);
    trial.epoch = static_cast<int>(earlier_.size());
    ++counts_[static_cast<std::size_t>(TrialState::kQueued)];
    queued_.insert(trial.number);
    population_.note(trial);
    if (sampler_ && !suggests_elsewhere_) warm_up(1);
    return trial;
}

void Study::move(Trial& trial, TrialState state) {
    TUNE_CHECK(!is_ended(trial.state), "an ended trial cannot change");
    --counts_[static_cast<std::size_t>(trial.state)];
    ++counts_[static_cast<std::size_t>(state)];
    queued_.erase(trial.number);
    running_.erase(trial.number);
    if (state == TrialState::kQueued) queued_.insert(trial.number);
    if (state == TrialState::kRunning) running_.insert(trial.number);
    trial.state = state;
}

void Study::requeue(Trial& trial, std::string reason, std::int64_t now_ms) {
    TUNE_CHECK(trial.state == TrialState::kRunning, "only a running attempt can end");
    watch().pay_attempt(trial, now_ms);
    trial.ran_ms += ran_so_far(trial, now_ms);
    move(trial, TrialState::kQueued);
    trial.reason = std::move(reason);
    trial.progress->holder = {};
    trial.progress->directive.reset();
    trial.progress->profile.reset();
}

void Study::finish(Trial& trial, TrialEnd end) {
    FailureWatch& failing = failures();  // made without this trial
    watch().pay_attempt(trial, end.now_ms);
    if (trial.state == TrialState::kRunning) trial.ran_ms += ran_so_far(trial, end.now_ms);
    move(trial, end.state);
    trial.value = end.value;
    trial.more_values = std::move(end.more_values);
    trial.constraint_values = std::move(end.constraint_values);
    trial.reason = std::move(end.reason);
    trial.end_ms = end.now_ms;
    last_end_ms_ = std::max(last_end_ms_, trial.end_ms);
    trial.ended_at = ++log_position_;
    if (const auto last = trial.progress->metrics.first().last()) {
        trial.last_step = last->step;
        trial.last_value = last->value;
    }
    const bool is_single = config_.more_metrics.empty();
    if (is_single && end.state == TrialState::kPruned && !trial.value && trial.last_step)
        trial.value = trial.last_value;
    trial.progress.reset();
    watch().trial_ended(trial, violation_of(trial, config_) <= 0);
    failing.trial_ended(trial.state, trial.reason);
    const bool is_success =
        trial.state == TrialState::kComplete || trial.state == TrialState::kPruned;
    if (is_success) excuse_before_success();
    if (known_) known_->add(trial);
    consider_best(trial);
    population_.note(trial);
    tell_sampler(trial);
    pruner_.finish(trial);
}

void Study::consider_best(const Trial& trial) {
    if (trial.state != TrialState::kComplete || !trial.value || std::isnan(*trial.value)) return;
    if (violation_of(trial, config_) > 0) return;
    const bool is_single = config_.more_metrics.empty();
    for (const std::uint64_t number : best_) {
        const Trial& other = trials_[number];
        const bool is_later_equal =
            is_single && *trial.value == *other.value && number < trial.number;
        if (is_later_equal || dominates(other, trial, config_)) return;
    }
    std::erase_if(best_, [&](std::uint64_t number) {
        return is_single || dominates(trial, trials_[number], config_);
    });
    best_.insert(std::lower_bound(best_.begin(), best_.end(), trial.number), trial.number);
    ++best_version_;
}

std::optional<Verdict> Study::report(Trial& trial, std::string_view metric,
                                     const Objective::Row& row, int attempt) {
    roll_back(trial, metric, row, attempt);
    if (!trial.progress->metrics.add(metric, row)) return std::nullopt;
    const bool is_running = trial.state == TrialState::kRunning && trial.attempt == attempt;
    if (metric != config_.metric.name || !is_running) return Verdict::kKeep;
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
    if (metric != config_.metric.name || forgotten != Objective::Forgotten::kAll) return;
    pruner_.begin_anew(trial.number);
}

// --- the end of an attempt -----------------------------------------------------------------------

void Study::settle(Trial& trial, const FinishRequest& request, std::int64_t now_ms) {
    const std::string reason = request.reason;
    trial.finish_request = request.request_id;
    trial.finish_attempt = trial.attempt;
    switch (request.outcome) {
        case Outcome::kDone:
            trial.reason = reason;  // for a result that is missing
            return finish_done(trial, now_ms);
        case Outcome::kPruned:
            return finish(trial,
                          {.state = TrialState::kPruned, .reason = reason, .now_ms = now_ms});
        case Outcome::kCancelled:
            return finish(trial,
                          {.state = TrialState::kCancelled, .reason = reason, .now_ms = now_ms});
        case Outcome::kPreempted: return requeue(trial, reason, now_ms);
        case Outcome::kLost: return lose_attempt(trial, reason, now_ms);
        case Outcome::kBadConfig:
            return finish(trial,
                          {.state = TrialState::kFailed, .reason = reason, .now_ms = now_ms});
        case Outcome::kOom: return retry_or_fail(trial, RetryOn::kOom, reason, now_ms);
        case Outcome::kFailed:
            return retry_or_fail(trial, request.timed_out ? RetryOn::kTimeout : RetryOn::kFailed,
                                 reason, now_ms);
    }
}

void Study::finish_done(Trial& trial, std::int64_t now_ms) {
    const ResultMetrics::Outcome outcome =
        trial.progress->metrics.outcome({}, trial.failed_attempt);
    if (outcome.result) return complete(trial, *outcome.result, {}, now_ms);
    std::string reason = "metric '" + outcome.bad_metric + "' is NaN";
    if (!outcome.is_nan) {
        reason = metric_never_arrived(outcome.bad_metric, trial.progress->other_metrics,
                                      trial.progress->is_unheard);
        if (outcome.is_of_failed)
            reason += " What attempt " + std::to_string(trial.failed_attempt) +
                      " measured before it failed does not count.";
        if (!trial.reason.empty()) reason = trial.reason + "; " + reason;
    }
    finish(trial, {.state = TrialState::kFailed, .reason = reason, .now_ms = now_ms});
}

void Study::complete(Trial& trial, const TrialResult& result, std::string reason,
                     std::int64_t now_ms) {
    finish(trial, {.state = TrialState::kComplete,
                   .value = result.value,
                   .reason = std::move(reason),
                   .now_ms = now_ms,
                   .more_values = result.more_values,
                   .constraint_values = result.constraint_values});
}

void Study::retry_or_fail(Trial& trial, RetryOn why, std::string reason, std::int64_t now_ms) {
    ++trial.user_failures;
    const auto& on = config_.retry.on;
    const bool is_retried = std::find(on.begin(), on.end(), why) != on.end();
    if (is_retried && trial.user_failures <= config_.retry.max) {
        trial.failed_attempt = trial.attempt;
        return requeue(trial, std::move(reason), now_ms);
    }
    finish(trial, {.state = TrialState::kFailed, .reason = std::move(reason), .now_ms = now_ms});
}

void Study::lose_attempt(Trial& trial, std::string reason, std::int64_t now_ms) {
    ++trial.lost_attempts;
    if (trial.lost_attempts < kLostAttemptsMax) return requeue(trial, std::move(reason), now_ms);
    finish(trial, {.state = TrialState::kFailed,
                   .reason = "given up after " + std::to_string(trial.lost_attempts) +
                             " lost attempts; the last: " + reason,
                   .now_ms = now_ms});
}

// --- the study -----------------------------------------------------------------------------------

std::vector<std::string> Study::differences(const StudyConfig& config) const {
    std::vector<std::string> found;
    const Json was = config_.space.to_json();
    const Json now = config.space.to_json();
    for (const auto& [name, spec] : now.items()) {
        if (!was.contains(name))
            found.push_back("space." + name + " is new");
        else if (was[name] != spec)
            found.push_back("space." + name + " is " + to_text(spec) + ", was " +
                            to_text(was[name]));
    }
    for (const auto& [name, spec] : was.items())
        if (!now.contains(name)) found.push_back("space." + name + " is gone");
    add_rule_differences(config_.space, config.space, found);
    add_metric_differences(config_, config, found);
    if (config.sampler.seed && *config.sampler.seed != identity_.seed)
        found.push_back("seed is " + std::to_string(*config.sampler.seed) + ", was " +
                        std::to_string(identity_.seed));
    return found;
}

// --- sampler and pruner --------------------------------------------------------------------------

Sampler& Study::sampler() {
    TUNE_CHECK(!suggests_elsewhere_, "suggestions of this study are made elsewhere");
    warm_up(trials_.size());
    return *sampler_;
}

std::unique_ptr<Sampler> Study::new_sampler(const Space& space, const SamplerConfig& config) const {
    return make_sampler(space, config, objectives_of(config_), identity_.seed,
                        warm_history(config_, space));
}

bool Study::warm_up(std::size_t trials_max) {
    if (!sampler_) {
        sampler_ = new_sampler(config_.space, config_.sampler);
        sampler_knows_ = 0;
    }
    const std::size_t end = std::min(trials_.size(), sampler_knows_ + trials_max);
    while (sampler_knows_ < end) {
        const Trial& trial = trials_[sampler_knows_++];
        tell_sampler(trial);
    }
    return sampler_knows_ == trials_.size();
}

Observation Study::observation_of(const Trial& trial) const {
    Observation seen;
    seen.number = trial.number;
    seen.point = trial.point;
    seen.origin = trial.origin;
    switch (trial.state) {
        case TrialState::kQueued:
        case TrialState::kRunning: break;
        case TrialState::kComplete:
            seen.state = Observation::State::kComplete;
            seen.value = trial.value.value_or(0);
            seen.more_values = trial.more_values;
            seen.violation = violation_of(trial, config_);
            seen.violations = violations_of(config_.constraints, trial.constraint_values);
            break;
        case TrialState::kPruned:
            seen.state = Observation::State::kPruned;
            seen.last_step = trial.last_step;
            seen.last_value = trial.last_value;
            break;
        case TrialState::kFailed:
        case TrialState::kCancelled: seen.state = Observation::State::kGone; break;
    }
    return seen;
}

void Study::tell_sampler(const Trial& trial) {
    // Trials that it does not know yet reach it later, as they are then.
    if (trial.number >= sampler_knows_) return;
    if (suggests_elsewhere_) return changed_.push_back(trial.number);
    if (!sampler_) return;
    const Result<void> observed = sampler_->observe(observation_of(trial));
    TUNE_CHECK(observed.has_value(), "points of a study lie in its space");
}

// --- rebuilding ----------------------------------------------------------------------------------

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
    const auto blank = new_sampler(config_.space, config_.sampler);
    trial.point = blank->suggest(trial.number);
    trial.asked_at = ++log_position_;
    trial.epoch = static_cast<int>(earlier_.size());
    trial.is_redrawn = true;
    restore_next(std::move(trial), false);
}

void Study::restore_next(Trial trial, bool is_written) {
    ++counts_[static_cast<std::size_t>(trial.state)];
    if (trial.state == TrialState::kQueued) queued_.insert(trial.number);
    if (trial.state == TrialState::kRunning) running_.insert(trial.number);
    if (!trial.ask_request.empty()) by_request_[trial.ask_request].push_back(trial.number);
    if (!trial.enqueue_request.empty()) by_enqueue_[trial.enqueue_request] = trial.number;
    log_position_ = std::max({log_position_, trial.asked_at, trial.ended_at});
    last_end_ms_ = std::max(last_end_ms_, trial.end_ms);
    if (is_excused(trial))
        ++excused_count_;
    else
        note_start(trial.start_ms);
    trial.sync = {.run_requested = is_written, .run_confirmed = is_written};
    if (!is_ended(trial.state)) {
        auto progress = std::make_unique<TrialProgress>(config_);
        if (trial.progress) progress->holder = trial.progress->holder;
        trial.progress = std::move(progress);
    }
    watch_.reset();
    failures_.reset();
    known_.reset();
    trials_.push_back(std::move(trial));
    consider_best(trials_.back());
    population_.note(trials_.back());
    if (!config_.pruner.is_none()) pruner_.fall_behind();
}

}  // namespace tune::tuner
