// Opening, and studies as a whole: create, go on, pause, stop, read.

#include "tuner/study/registry/studies.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/id.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/system/user_name.h"
#include "tuner/study/journal/warm_start.h"
#include "tuner/study/registry/studies_impl.h"

namespace tune::tuner {
namespace {

/// Trials whose reports are read before a server answers: about 0.3 s.
constexpr std::size_t kHistoryAtOnceMax = 1000;
/// Reports that a pruner observes before other calls get their turn.
constexpr std::size_t kHistorySlice = 10'000;

std::uint64_t draw_seed() {
    return std::stoull(random_hex(8), nullptr, 16) & kSeedMax;
}

bool has_all_values(const Trial& trial, const StudyConfig& config) {
    return trial.state != TrialState::kComplete ||
           (trial.more_values.size() == config.more_metrics.size() &&
            trial.constraint_values.size() == config.constraints.size());
}

std::string list_of(const std::vector<std::string>& differences) {
    std::string text;
    for (const std::string& difference : differences)
        text += (text.empty() ? "" : "; ") + difference;
    return text;
}

bool has_finite_values(const Trial& trial) {
    const auto is_finite = [](double value) { return std::isfinite(value); };
    return trial.value && is_finite(*trial.value) &&
           std::all_of(trial.more_values.begin(), trial.more_values.end(), is_finite);
}

/// Values can be compared when there are as many, with the same goals; another name is noted.
Result<void> compare_objectives(const StudyConfig& from, StudyConfig& to) {
    const std::string& name = to.warm_start->from;
    if (from.more_metrics.size() != to.more_metrics.size())
        return Error{Code::kInvalidParameterValue,
                     "warm_start.from: study '" + name + "' has " +
                         std::to_string(1 + from.more_metrics.size()) +
                         " objectives and this one " + std::to_string(1 + to.more_metrics.size()) +
                         "; give its points as `initial` instead"};
    for (std::size_t i = 0; i <= from.more_metrics.size(); ++i) {
        const MetricConfig& theirs = i == 0 ? from.metric : from.more_metrics[i - 1];
        const MetricConfig& ours = i == 0 ? to.metric : to.more_metrics[i - 1];
        if (theirs.goal != ours.goal)
            return Error{Code::kInvalidParameterValue, "warm_start.from: '" + theirs.name +
                                                           "' of study '" + name + "' is to be " +
                                                           std::string(goal_name(theirs.goal)) +
                                                           ", and '" + ours.name + "' is not"};
        if (theirs.name != ours.name)
            to.warm_start->notes.push_back("its metric is '" + theirs.name + "', not '" +
                                           ours.name + "'");
    }
    return {};
}

}  // namespace

Studies::Impl::Impl(StudiesOptions options)
    : options_(std::move(options)),
      clock_(options_.clock != nullptr ? *options_.clock : system_clock_),
      store_(*options_.store) {}

Studies::Impl::~Impl() {
    stop();
}

// --- opening -------------------------------------------------------------------------------------

Result<void> Studies::Impl::load() {
    const std::lock_guard<std::mutex> lock(mutex_);
    TUNE_TRY(documents, store_.list_documents(kStudyCollection));
    for (const tracker::Document& document : documents) {
        const Result<void> loaded = load_study(document);
        if (loaded) continue;
        if (loaded.error().code != Code::kDataLoss) return loaded.error();
        const auto aside = unreadable_.emplace(document.key, loaded.error().text()).first;
        log_error(no_such_study(aside->first).message);
    }
    credentials_.forget_silence();
    TUNE_TRY(quotas, store_.list_documents(kQuotaCollection));
    for (const tracker::Document& document : quotas) quotas_.load(document);
    note_obstacles();
    seen_position_ = store_.last_position();
    opened_ms_ = now_ms();
    return {};
}

Result<void> Studies::Impl::load_study(const tracker::Document& document) {
    Result<Study> read = study_from_document(document.json_text);
    if (!read) return Error{Code::kDataLoss, read.error().message, document.key};
    auto study = std::make_unique<Study>(std::move(read).value());
    if (Result<void> loaded = load_trials(*study); !loaded) {
        std::erase_if(by_run_,
                      [&](const auto& entry) { return entry.second.study == study.get(); });
        return loaded;
    }
    study->suggest_elsewhere();
    const auto experiment = store_.get_experiment(study->identity().experiment_id);
    study->set_experiment_deleted(!experiment ||
                                  experiment->lifecycle_stage != tracker::LifecycleStage::kActive);
    studies_.emplace(document.key, std::move(study));
    return {};
}

Result<void> Studies::Impl::load_trials(Study& study) {
    {
        TUNE_TRY(documents,
                 store_.list_documents(kTrialCollection, trial_key_prefix(study.identity())));
        for (const tracker::Document& document : documents) {
            Result<Trial> trial = trial_from_document(document.json_text);
            if (!trial) return Error{Code::kDataLoss, trial.error().message, document.key};
            const Result<void> fits = study.bring_up(*trial);
            if (!fits) return Error{Code::kDataLoss, fits.error().message, document.key};
            if (!has_all_values(*trial, study.config()))
                return Error{Code::kDataLoss,
                             "a complete trial lacks values of the study's metrics", document.key};
            study.restore(std::move(trial).value());
        }
    }
    for (std::uint64_t number = 0; number < study.trials().size(); ++number) {
        Trial& trial = *study.find(number);
        admit(study, trial);
        index_run(study, trial);
        follow(study, trial);
        study.note_peaks(trial);
        if (!is_ended(trial.state)) TUNE_TRY_VOID(load_progress(study, trial));
    }
    const bool is_needed = study.state() == StudyState::kRunning || !study.running().empty();
    if (is_needed && with_reports(study).size() <= kHistoryAtOnceMax) load_history(study);
    study.complete_if_done(now_ms());
    return {};
}

/// A live lease begins anew: its agent could not renew it while no server was there.
Result<void> Studies::Impl::load_progress(Study& study, Trial& trial) {
    Holder& holder = trial.progress->holder;
    if (holder.ttl_ms > 0) begin_lease(trial);
    // One of its agents has told of a fault, and the others may not know yet.
    if (holder.verdict && holder.verdict->outcome != Outcome::kDone)
        trial.progress->directive = Directive{.run_id = trial.run_id,
                                              .attempt = trial.attempt,
                                              .action = Action::kStop,
                                              .reason = holder.verdict->reason};
    if (trial.attempt == 0) return {};
    for (const std::string& name : measured_metrics(study.config())) {
        TUNE_TRY(history, store_.metric_history(trial.run_id, name));
        for (const tracker::Metric& metric : history.items) {
            const Objective::Row row{metric.step, metric.timestamp_ms, metric.value};
            if (!is_rolled_back(trial.roll_backs, name, row))
                trial.progress->metrics.add(name, row);
        }
        const bool has_begun =
            std::any_of(trial.roll_backs.begin(), trial.roll_backs.end(), [&](const RollBack& one) {
                return one.metric == name && one.attempt == trial.attempt;
            });
        const bool has_rows =
            !history.items.empty() && history.items.back().timestamp_ms > trial.attempt_start_ms;
        if (trial.attempt > 1 && !has_begun && !has_rows)
            trial.progress->metrics.begin_attempt(name);
    }
    const auto& cost = study.config().budget.cost;
    if (!cost || cost->of != CostBudget::Of::kMetric) return {};
    TUNE_TRY(costs, store_.metric_history(trial.run_id, cost->metric));
    for (const tracker::Metric& metric : costs.items)
        trial.progress->note_cost(metric.step, metric.value);
    return {};
}

void Studies::Impl::warm_up() {
    LockedBatch locked(*this);
    serves_ = true;
    show_interrupted(locked, false);
    for (const auto& [name, study] : studies_)
        if (study->state() == StudyState::kRunning && !draining_) look(locked, *study);
    for (const auto& [name, study] : studies_) {
        study->forget_failed_registration();
        register_best(locked, *study);
    }
}

/// The trials whose reports a pruner wants to know. Most trials of large studies report only once,
/// at their end; those that never did are known by their documents.
std::vector<Studies::Impl::Snapshot> Studies::Impl::with_reports(const Study& study) {
    std::vector<Snapshot> trials;
    for (const Trial& trial : study.trials()) {
        const bool measures =
            trial.state != TrialState::kFailed && trial.state != TrialState::kCancelled;
        const bool may_have_reported = trial.last_step || !is_ended(trial.state);
        if (measures && may_have_reported && trial.attempt > 0)
            trials.push_back({trial.run_id, trial.number});
    }
    return trials;
}

/// Pruners of large studies observe their history in the background, so that a server starts at
/// once.
void Studies::Impl::prepare_large() {
    LockedBatch locked(*this);
    for (const auto& [name, study] : studies_)
        if (study->state() == StudyState::kRunning || !study->running().empty())
            prepare(locked, *study);
}

/// Tells the pruner what was reported before.
void Studies::Impl::load_history(Study& study) {
    if (!study.needs_history()) return;
    for (const Snapshot& trial : with_reports(study)) {
        const auto history = store_.metric_history(trial.run_id, study.config().metric.name);
        if (!history) {
            log_warning("study '" + study.name() + "': " + history.error().text());
            continue;
        }
        std::vector<Objective::Row> rows;
        for (const tracker::Metric& metric : history->items)
            rows.push_back({metric.step, metric.timestamp_ms, metric.value});
        study.replay_reports(trial.number, rows);
    }
    while (!study.replay_history(kHistorySlice)) {
    }
}

void Studies::Impl::index_run(Study& study, Trial& trial) {
    by_run_.emplace(std::string_view(trial.run_id), TrialRef{&study, &trial});
}

// --- create --------------------------------------------------------------------------------------

Study* Studies::Impl::find_study(std::string_view name) const {
    const auto found = studies_.find(name);
    return found == studies_.end() ? nullptr : found->second.get();
}

Error Studies::Impl::no_such_study(std::string_view name) const {
    if (const auto aside = unreadable_.find(name); aside != unreadable_.end())
        return {Code::kDataLoss, "study '" + aside->first +
                                     "' cannot be read and is left as it is (" + aside->second +
                                     "); a newer `tune` or a backup may have a readable copy"};
    return {Code::kResourceDoesNotExist,
            "there is no study '" + std::string(name) + "'; `tune ls` lists them"};
}

namespace {

Error taken_meanwhile(const std::string& name) {
    return {Code::kResourceConflict, "somebody made '" + name + "' a moment ago; ask again"};
}

}  // namespace

void Studies::Impl::create(StudyConfig config, CreateOptions options, Done<Created> done) {
    Result<void> checked = check_study_name(config.study);
    if (checked) checked = check_study(config, false);
    if (checked) checked = check_sampler(config.space, config.sampler);
    if (!checked) return done(checked.error());
    if (unreadable_.contains(config.study)) return done(no_such_study(config.study));
    Wanted wanted{std::move(config), options, std::move(done)};
    LockedBatch locked(*this);
    if (Study* study = find_study(wanted.config.study))
        return resume(locked, *study, std::move(wanted));
    auto shared = std::make_shared<Wanted>(std::move(wanted));
    if (store_.post_read([this, shared] { find_experiment(std::move(*shared)); })) return;
    locked.after([shared] {
        shared->done(
            Error{Code::kRequestLimitExceeded, "the server is busy or stopping; try again"});
    });
}

/// On a reader thread: the experiment of the study's name is used, or made where there is none or
/// only a deleted one, which does not keep its name.
void Studies::Impl::find_experiment(Wanted wanted) {
    const std::string name = wanted.config.study;
    const auto experiment = store_.get_experiment_by_name(name);
    if (experiment && experiment->lifecycle_stage == tracker::LifecycleStage::kActive) {
        if (wanted.options.only_new) return wanted.done(taken_meanwhile(name));
        return create_in_experiment(std::move(wanted), experiment->experiment_id);
    }
    if (!experiment && experiment.error().code != Code::kResourceDoesNotExist)
        return wanted.done(experiment.error());
    auto shared = std::make_shared<Wanted>(std::move(wanted));
    store_.submit(
        tracker::CreateExperiment{.name = name, .owner_id = shared->options.owner_id},
        [this, shared](const Result<tracker::Outcome>& outcome) {
            completions_.post([this, shared, outcome] { experiment_made(*shared, outcome); });
        });
}

void Studies::Impl::experiment_made(Wanted& wanted, const Result<tracker::Outcome>& outcome) {
    if (outcome)
        return create_in_experiment(std::move(wanted), std::get<tracker::ExperimentId>(*outcome));
    if (outcome.error().code != Code::kResourceAlreadyExists) return wanted.done(outcome.error());
    auto shared = std::make_shared<Wanted>(std::move(wanted));
    if (!store_.post_read([this, shared] { find_experiment(std::move(*shared)); }))
        shared->done(Error{Code::kRequestLimitExceeded, "the server is busy; try again"});
}

void Studies::Impl::create_in_experiment(Wanted wanted, std::int64_t experiment_id) {
    StudyConfig& config = wanted.config;
    {
        LockedBatch locked(*this);
        if (Study* study = find_study(config.study))  // another client was faster
            return resume(locked, *study, std::move(wanted));
        if (Result<void> filled = fill_warm_start(config); !filled)
            return locked.after(
                [done = std::move(wanted.done), error = filled.error()] { done(error); });
    }
    StudyIdentity identity{.name = config.study,
                           .id = random_hex(8),
                           .run_id = random_hex(16),
                           .experiment_id = experiment_id,
                           .seed = config.sampler.seed ? *config.sampler.seed : draw_seed(),
                           .created_ms = now_ms(),
                           .user = user_name(),
                           .owner = wanted.options.user};
    const StudyConfig as_wanted = config;
    config.sampler.seed = identity.seed;
    auto made = std::make_unique<Study>(std::move(identity), std::move(config));
    // A model of the earlier study's trials may take its time: nobody else knows this study yet.
    const std::vector<Trial*> first = begin_warm(*made);
    made->suggest_elsewhere();
    LockedBatch locked(*this);
    if (Study* faster = find_study(as_wanted.study)) {
        wanted.config = as_wanted;
        return resume(locked, *faster, std::move(wanted));
    }
    add_study(locked, std::move(made), first, std::move(wanted.done), std::move(wanted.replaced));
}

void Studies::Impl::add_study(LockedBatch& locked, std::unique_ptr<Study> made,
                              const std::vector<Trial*>& first, Done<Created> done,
                              std::string replaced) {
    Study& study = *made;
    if (const std::string outlook = sampler_outlook(study.config()); !outlook.empty())
        log_info("study '" + study.name() + "': sampler " +
                 std::string(study.config().sampler.name()) + ": " + outlook);
    studies_.emplace(study.name(), std::move(made));
    study.note_activity(now_ms());
    note_obstacle(study);
    for (Trial* trial : first) admit(study, *trial);
    locked.write(create_study_commands(study), [this, &study, done = std::move(done),
                                                replaced = std::move(replaced)](
                                                   LockedBatch& later, Result<void> result) {
        if (!result) {
            const auto found = studies_.find(study.name());
            const bool is_here = found != studies_.end() && found->second.get() == &study;
            if (is_here) retire(std::move(studies_.extract(found).mapped()));
            return later.after([done, error = result.error()] { done(error); });
        }
        notify(later, study, nullptr);
        wake_leases(later);
        later.after([done, name = study.name(), replaced] { done(Created{name, true, replaced}); });
    });
    for (Trial* trial : first) write_trial(locked, study, *trial, nullptr, {});
}

/// The best points of an earlier study wait as the first trials, as far as the budget goes.
std::vector<Trial*> Studies::Impl::begin_warm(Study& study) const {
    std::vector<Trial*> first;
    if (!study.config().warm_start) return first;
    for (const Point& point : plan_warm_start(study.config()).first) {
        const Result<Trial*> added = study.enqueue(point, {}, now_ms());
        // A point that this study's rules forbid is no first trial; without budget there is none.
        if (!added && added.error().code == Code::kInvalidParameterValue) continue;
        if (!added) break;
        first.push_back(*added);
    }
    return first;
}

/// From the study that a warm start names, under the lock: the trials travel in the new study's
/// configuration from here on, so that neither a deletion nor a change of the other matters.
Result<void> Studies::Impl::fill_warm_start(StudyConfig& config) const {
    if (!config.warm_start) return {};
    WarmStartConfig& warm_start = *config.warm_start;
    if (warm_start.trials.empty()) {
        const Study* from = find_study(warm_start.from);
        if (from == nullptr)
            return Error{Code::kResourceDoesNotExist,
                         "warm_start.from: " + no_such_study(warm_start.from).message};
        TUNE_TRY_VOID(compare_objectives(from->config(), config));
        for (const Trial& trial : from->trials())
            if (trial.state == TrialState::kComplete && has_finite_values(trial) &&
                violation_of(trial, from->config()) <= 0)
                warm_start.trials.push_back({to_text(from->config().space.to_json(trial.point)),
                                             *trial.value, trial.more_values});
        if (warm_start.trials.empty())
            return Error{Code::kInvalidParameterValue, "warm_start.from: no trial of study '" +
                                                           warm_start.from + "' is complete"};
    }
    rank_earlier(warm_start, config);
    for (std::string& sentence : plan_warm_start(config).notes)
        warm_start.notes.push_back(std::move(sentence));
    return {};
}

Result<void> Studies::Impl::take_other_config(Study& study, StudyConfig config,
                                              const CreateOptions& options) {
    const std::vector<std::string> differences = study.differences(config);
    const bool is_space_alone =
        std::all_of(differences.begin(), differences.end(),
                    [](const std::string& difference) { return difference.starts_with("space."); });
    if (differences.empty()) {
        study.reconfigure(std::move(config));
        return {};
    }
    if (options.extend && is_space_alone) return study.extend(std::move(config));
    return Error{Code::kResourceConflict,
                 "study '" + study.name() + "'" + std::string(kDifferentSettings) +
                     list_of(differences) + ". Choose another name" +
                     (is_space_alone ? "," : " or") + " undo the change to continue it" +
                     (is_space_alone ? ", or extend it (--extend, \"extend\": true): its trials "
                                       "then count with the init of parameters that are new."
                                     : ".")};
}

void Studies::Impl::resume(LockedBatch& locked, Study& study, Wanted wanted) {
    if (wanted.options.only_new)
        return locked.after([done = std::move(wanted.done), error = taken_meanwhile(study.name())] {
            done(error);
        });
    if (is_replaced(study, wanted)) return replace(locked, study, std::move(wanted));
    Result<void> taken = check_usable(study);
    if (taken) taken = take_other_config(study, std::move(wanted.config), wanted.options);
    if (!taken)
        return locked.after(
            [done = std::move(wanted.done), error = taken.error()] { done(error); });
    study.note_activity(now_ms());
    study.forget_failed_registration();
    const std::vector<Trial*> again = run_again(study);
    prepare(locked, study);
    study.complete_if_done(now_ms());
    write_study(locked, study,
                [done = std::move(wanted.done), name = study.name()](LockedBatch& later,
                                                                     Result<void> result) {
                    later.after([done, name, result = std::move(result)] {
                        if (!result) return done(result.error());
                        done(Created{name, false});
                    });
                });
    for (Trial* trial : again) write_trial(locked, study, *trial, nullptr, {});
    after_change(locked, study);
}

/// Before trials start again after a rest or with another pruner: the pruner observes the history,
/// on a reader thread.
void Studies::Impl::prepare(LockedBatch& locked, Study& study) {
    if (!study.needs_history()) return;
    auto job = [this, &study, hold = retired_.hold(), trials = with_reports(study),
                version = study.pruner_version(), metric = study.config().metric.name] {
        for (const Snapshot& trial : trials) {
            const auto history = store_.metric_history(trial.run_id, metric);
            if (!history) continue;
            std::vector<Objective::Row> rows;
            for (const tracker::Metric& point : history->items)
                rows.push_back({point.step, point.timestamp_ms, point.value});
            const LockedBatch step(*this);
            if (study.pruner_version() != version) return;  // the change asks for the history anew
            study.replay_reports(trial.number, rows);
        }
        for (bool is_known = false; !is_known;) {
            const LockedBatch step(*this);
            is_known = stopping_ || study.pruner_version() != version ||
                       study.replay_history(kHistorySlice);
        }
    };
    locked.after([this, job = std::move(job)] {
        if (!store_.post_read(job))
            log_warning("the pruner starts without its history: the server is busy");
    });
}

// --- change and read -----------------------------------------------------------------------------

void Studies::Impl::change(const std::string& name, Change change, Done<void> done) {
    LockedBatch locked(*this);
    Study* study = find_study(name);
    if (study == nullptr) return locked.after([done, error = no_such_study(name)] { done(error); });
    const bool is_late = store_.last_position() > seen_position_ && !stopping_;
    if (study->is_experiment_deleted() && is_late)  // it may have been restored by now
        return after_observed(locked,
                              [this, name, change, done] { this->change(name, change, done); });
    if (const auto usable = check_usable(*study); !usable)
        return locked.after([done, error = usable.error()] { done(error); });
    const bool is_completed = study->state() == StudyState::kCompleted;
    std::vector<Trial*> again;
    if (change == Change::kResume) {
        again = run_again(*study);
        prepare(locked, *study);
        study->complete_if_done(now_ms());
    } else if (is_completed) {
        return locked.after([done, name] {
            done(Error{Code::kResourceConflict, "study '" + name + "' is completed already"});
        });
    } else {
        study->set_state(change == Change::kPause ? StudyState::kPaused : StudyState::kStopped);
    }
    write_study(locked, *study, [done](LockedBatch& later, Result<void> result) {
        later.after([done, result = std::move(result)] { done(result); });
    });
    for (Trial* trial : again) write_trial(locked, *study, *trial, nullptr, {});
    if (study->state() == StudyState::kStopped) {
        const std::set<std::uint64_t> running = study->running();
        for (const std::uint64_t number : running)
            direct(locked, *study, *study->find(number), Action::kStop, "the study was stopped");
    }
    after_change(locked, *study);
}

void Studies::Impl::wait(const std::string& name, std::int64_t version, std::int64_t wait_ms,
                         Done<void> done) {
    LockedBatch locked(*this);
    const Study* study = find_study(name);
    if (study == nullptr) return locked.after([done, error = no_such_study(name)] { done(error); });
    if (study->version() != version || wait_ms <= 0 || draining_)
        return locked.after([done] { done({}); });
    const std::int64_t longest_ms = std::min<std::int64_t>(wait_ms, kLongPollMax_ms);
    study_polls_.push_back({study, monotonic_ms() + longest_ms, std::move(done)});
    wake_ticker(study_polls_.back().deadline_ms);
}

Result<void> Studies::Impl::read(std::string_view name,
                                 const std::function<void(const Study&)>& read) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    Study* study = find_study(name);
    if (study == nullptr) return no_such_study(name);
    study->set_attended(is_attended(*study));
    read(*study);
    return {};
}

void Studies::Impl::read_all(const std::function<void(const Study&)>& read) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<const Study*> ordered;
    for (const auto& [name, study] : studies_) {
        study->set_attended(is_attended(*study));
        ordered.push_back(study.get());
    }
    std::stable_sort(ordered.begin(), ordered.end(), [](const Study* a, const Study* b) {
        return a->identity().created_ms < b->identity().created_ms;
    });
    for (const Study* study : ordered) read(*study);
}

}  // namespace tune::tuner
