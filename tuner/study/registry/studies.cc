// Opening; what the parts of Studies tell each other; what time and commits bring; reading; the
// end.

#include "tuner/study/registry/studies.h"

#include <algorithm>

#include "base/limits.h"
#include "base/log.h"
#include "tuner/study/journal/erased_studies.h"
#include "tuner/study/journal/journal.h"
#include "tuner/study/registry/studies_impl.h"

namespace tune::tuner {
namespace {

/// How often removed studies are looked at until they are freed.
constexpr std::int64_t kRetiredLook_ms = 1000;
/// A client without a lease is taken for gone after so many lease times of silence. It keeps its
/// trials: only what is shown of the study changes.
constexpr std::int64_t kSilentLeases = 20;
/// Names of metrics kept for the sentence "reported only ...".
constexpr std::size_t kOtherMetricsMax = 8;

}  // namespace

Studies::Impl::Impl(StudiesOptions options)
    : options_(std::move(options)),
      clock_(options_.clock != nullptr ? *options_.clock : system_clock_),
      store_(*options_.store) {}

Studies::Impl::~Impl() {
    stop();
}

// --- opening ------------------------------------------------------------------------------------

Result<void> Studies::Impl::load() {
    const auto lock = lock_.take();
    TUNE_TRY(documents, store_.list_documents(kStudyCollection));
    for (const tracker::Document& document : documents) {
        const Result<Study*> loaded = loader_.load(document);
        if (loaded) continue;
        if (loaded.error().code != Code::kDataLoss) return loaded.error();
        log_error(book_.set_aside(document.key, loaded.error().text()).message);
    }
    TUNE_TRY_VOID(sweeps_.load());
    credentials_.forget_silence();
    TUNE_TRY_VOID(broker_.turns.load_quotas());
    broker_.turns.note_obstacles();
    commits_.catch_up();
    opened_ms_ = clock_.now_ms();
    return {};
}

void Studies::Impl::warm_up() {
    LockedBatch locked(lock_);
    phase_.serves = true;
    lifecycle_.show_interrupted(locked, false);
    for (const auto& [name, study] : book_.all())
        if (study->state() == StudyState::kRunning && !phase_.draining)
            suggestions_.look(locked, *study);
    for (const auto& [name, study] : book_.all()) {
        study->registration().forget_failed();
        registrar_.begin(locked, *study);
    }
}

/// Pruners of large studies observe their history in the background, so that a server starts at
/// once.
void Studies::Impl::prepare_large() {
    LockedBatch locked(lock_);
    for (const auto& [name, study] : book_.all())
        if (study->state() == StudyState::kRunning || !study->trials().running().empty())
            loader_.prepare(locked, *study);
}

// --- what the parts hear of each other ----------------------------------------------------------

void Studies::Impl::follow(Study& study, Trial& trial) {
    credentials_.follow(study, trial);
    broker_.agents.follow(study, trial);
}

void Studies::Impl::study_written(LockedBatch& locked, Study& study) {
    study.attendance().is_shown = true;  // its run says RUNNING now, whoever is there
    notify(locked, study, nullptr);
    registrar_.begin(locked, study);
}

void Studies::Impl::after_change(LockedBatch& locked, Study& study) {
    stop_if_failing(locked, study);
    if (study.state() == StudyState::kStopped)
        cancel_queued(locked, study, "the study was stopped");
    if (study.state() == StudyState::kRunning) {
        if (const auto over = study.budget().over(clock_.now_ms()))
            stop_trials(locked, study, over->note);
    }
    suggestions_.complete_if_done(locked, study);
    wake_leases(locked);
}

/// A study whose command cannot work stops early (Study::stop_if_failing).
void Studies::Impl::stop_if_failing(LockedBatch& locked, Study& study) {
    if (!study.stop_if_failing()) return;
    writer_.write_study(locked, study, {});
    const std::set<std::uint64_t> running = study.trials().running();
    for (const std::uint64_t number : running)
        direct(locked, study, *study.find(number), Action::kStop,
               "the study was stopped: " + study.status().note);
}

void Studies::Impl::cancel_queued(LockedBatch& locked, Study& study, const std::string& reason) {
    const std::set<std::uint64_t> queued = study.trials().queued();
    for (const std::uint64_t number : queued)
        writer_.finish_trial(
            locked, study, *study.find(number),
            {.state = TrialState::kCancelled, .reason = reason, .now_ms = clock_.now_ms()});
}

/// A budget is used: nothing waits any more, and what runs is asked to end.
void Studies::Impl::stop_trials(LockedBatch& locked, Study& study, const std::string& reason) {
    cancel_queued(locked, study, reason);
    const std::set<std::uint64_t> running = study.trials().running();
    for (const std::uint64_t number : running)
        direct(locked, study, *study.find(number), Action::kStop, reason);
}

void Studies::Impl::notify(LockedBatch& locked, Study& study, const Trial* trial) {
    study.attendance().is_attended = is_attended(study);
    const bool is_back = !study.attendance().is_shown && !is_running_alone(study);
    if (is_back) lifecycle_.show_attended(locked, study, true);
    if (const auto due_ms = silence_due_ms(study)) wake_ticker(*due_ms);
    study.touch();
    if (options_.listener != nullptr) {
        if (trial != nullptr) options_.listener->on_trial(study, *trial);
        if (trial == nullptr || is_back) options_.listener->on_study(study);
    }
    waits_.wake(locked, study);
}

void Studies::Impl::wake_ticker_for(const Study& study, const Trial& trial) {
    const BudgetConfig& budget = study.config().budget;
    if (budget.time_ms || budget.cost) return ticker_.wake();
    if (const auto first = trial.progress->holder.first_expiry_ms()) wake_ticker(*first);
}

// --- commits ------------------------------------------------------------------------------------

void Studies::Impl::on_commit(const tracker::Commit& commit) {
    LockedBatch locked(lock_);
    for (const tracker::Event& event : commit.events)
        if (const auto* metrics = std::get_if<tracker::MetricsLogged>(&event))
            take_metrics(locked, *metrics);
        else if (const auto* changed = std::get_if<tracker::ExperimentChanged>(&event))
            lifecycle_.take_experiment(locked, changed->experiment);
    commits_.observe(locked, commit.position);
}

/// Whoever logged them: the agent, an MLflow client in any language, a REST client.
void Studies::Impl::take_metrics(LockedBatch& locked, const tracker::MetricsLogged& event) {
    const TrialRef ref = book_.find_run(event.run_id);
    // Decided by the place in the log, as after a restart, not by what has happened meanwhile.
    if (ref.trial == nullptr || is_ended(ref.trial->state)) return;
    const std::int64_t attempt = event.mark.value_or(
        ref.trial->progress->is_unmarked ? ref.trial->attempt : kFirstAttemptMark);
    if (attempt == kNoAttemptMark || ref.trial->attempt < attempt) return;
    Study& study = *ref.study;
    Trial& trial = *ref.trial;
    TrialProgress& progress = *trial.progress;
    const bool is_running = trial.state == TrialState::kRunning && trial.attempt == attempt;
    const auto& cost = study.config().budget.cost;
    bool has_objective = false;
    study.attendance().last_activity_ms = clock_.now_ms();
    for (const tracker::Metric& metric : event.metrics) {
        if (cost && metric.key == cost->metric) progress.note_cost(metric.step, metric.value);
        const std::optional<Verdict> verdict =
            study.report(trial, metric.key, {metric.step, metric.timestamp_ms, metric.value},
                         static_cast<int>(attempt));
        if (!verdict) {
            auto& others = progress.other_metrics;
            const bool is_own =
                metric.key.starts_with("tune.") || metric.key.starts_with("system/");
            if (!is_own && others.size() < kOtherMetricsMax &&
                std::find(others.begin(), others.end(), metric.key) == others.end())
                others.push_back(metric.key);
            continue;
        }
        has_objective = true;
        if (*verdict == Verdict::kPrune && !progress.directive)
            direct(locked, study, trial, Action::kPrune,
                   "pruned at step " + std::to_string(metric.step));
    }
    if (std::exchange(progress.is_rolled_back, false))
        writer_.write_trial(locked, study, trial, nullptr, {});
    if (has_objective) notify(locked, study, &trial);
    // Last, since it may end the trial at once.
    if (const auto why = study.budget().exceeded_by(trial);
        why && is_running && !progress.directive)
        direct(locked, study, trial, Action::kStop, *why);
    end_if_over(locked, study);
}

void Studies::Impl::end_if_over(LockedBatch& locked, Study& study) {
    if (study.state() == StudyState::kRunning && study.budget().over(clock_.now_ms()))
        after_change(locked, study);
}

// --- time ---------------------------------------------------------------------------------------

void Studies::Impl::tick() {
    LockedBatch locked(lock_);
    broker_.tick(locked, clock_.monotonic_ms());
    for (const auto& [name, study] : book_.all()) {
        end_if_over(locked, *study);
        if (!study->attendance().is_shown || !is_running_alone(*study)) continue;
        lifecycle_.show_attended(locked, *study, false);
        notify(locked, *study, nullptr);
    }
    writer_.retry_due(locked);
    sweeps_.retry_due(locked);
    expire_polls(locked);
    free_retired(locked);
    retired_looked_ms_ = clock_.monotonic_ms();
}

void Studies::Impl::expire_polls(LockedBatch& locked) {
    const std::int64_t due = phase_.draining ? Timers::kNever_ms : clock_.monotonic_ms();
    waits_.expire(locked, due);
    broker_.polls.expire(locked, due);
}

std::int64_t Studies::Impl::next_deadline_ms() const {
    std::int64_t next = std::min(broker_.next_ms(), waits_.next_ms());
    for (const std::int64_t retry_at_ms : {writer_.retry_at_ms(), sweeps_.retry_at_ms()})
        if (retry_at_ms != 0) next = std::min(next, retry_at_ms);
    if (book_.retired().size() > 0) next = std::min(next, retired_looked_ms_ + kRetiredLook_ms);
    for (const auto& [name, study] : book_.all()) {
        if (study->state() != StudyState::kRunning) continue;
        if (const auto due_ms = silence_due_ms(*study)) next = std::min(next, *due_ms);
        const auto deadline = study->budget().deadline_ms(clock_.now_ms());
        if (!deadline) continue;
        // Told once: afterwards the running trials are on their way out.
        if (!study->budget().over(clock_.now_ms()))
            next = std::min(next, clock_.monotonic_ms() +
                                      std::max<std::int64_t>(*deadline - clock_.now_ms(), 1));
        else if (study->trials().running().empty())
            next = clock_.monotonic_ms();
    }
    return next;
}

void Studies::Impl::start_ticker() {
    if (options_.ticker) ticker_.start();
}

// --- removed studies ----------------------------------------------------------------------------

/// Whether something that is no task names the study: one that waits for a suggestion, an answer
/// or a place.
bool Studies::Impl::is_named(const Study& study) const {
    return suggestions_.names(study) || clients_.names(study) || waits_.names(study) ||
           registrar_.names(study) || broker_.names(study) || sweeps_.names(study);
}

void Studies::Impl::free_retired(LockedBatch& locked) {
    if (book_.retired().size() == 0) return;
    const auto freed = std::make_shared<std::vector<std::unique_ptr<Study>>>(
        book_.take_free([this](const Study& study) { return is_named(study); }));
    for (const auto& study : *freed) {
        suggestions_.forget(*study);
        writer_.forget(*study);
        broker_.forget(*study);
    }
    locked.after([freed] { freed->clear(); });  // a large one takes a while
}

std::size_t Studies::Impl::retired_count() const {
    const auto lock = lock_.take();
    return book_.retired().size();
}

// --- read ---------------------------------------------------------------------------------------

void Studies::Impl::wait(const std::string& name, std::int64_t version, std::int64_t wait_ms,
                         Done<void> done) {
    LockedBatch locked(lock_);
    const Study* study = book_.find(name);
    if (study == nullptr)
        return locked.after([done, error = book_.no_such_study(name)] { done(error); });
    if (study->version() != version || wait_ms <= 0 || phase_.draining)
        return locked.after([done] { done({}); });
    const std::int64_t longest_ms = std::min<std::int64_t>(wait_ms, kLongPollMax_ms);
    const std::int64_t deadline_ms = clock_.monotonic_ms() + longest_ms;
    waits_.add(*study, deadline_ms, std::move(done));
    wake_ticker(deadline_ms);
}

std::optional<std::int64_t> Studies::Impl::experiment_of(const std::string& name,
                                                         bool or_erased) const {
    std::optional<std::int64_t> found;
    const Result<void> is_there =
        read(name, [&found](const Study& study) { found = study.identity().experiment_id; });
    if (is_there || !or_erased) return found;
    const Result<ErasedStudy> erased = find_erased_study(store_, name);
    if (erased) found = erased->experiment_id;
    return found;
}

/// Whether a running trial is in the hands of somebody who is there. Who has no lease may have
/// said nothing since `heard_since_ms` and is there.
bool Studies::Impl::is_held_since(const Study& study, std::int64_t heard_since_ms) const {
    return std::any_of(study.trials().running().begin(), study.trials().running().end(),
                       [&](std::uint64_t number) {
                           const Trial& trial = study.trials()[number];
                           const Holder& holder = trial.progress->holder;
                           if (!holder.agent_id.empty())
                               return broker_.agents.contains(holder.agent_id);
                           if (holder.ttl_ms > 0) return phase_.serves;
                           return std::max(heard_ms(study), trial.attempt_start_ms) >=
                                  heard_since_ms;
                       });
}

bool Studies::Impl::is_held(const Study& study) const {
    return is_held_since(study, 0);
}

/// When somebody was last heard of, or could not be since no server was there.
std::int64_t Studies::Impl::heard_ms(const Study& study) const {
    return std::max(study.attendance().last_activity_ms, phase_.serves ? opened_ms_ : 0);
}

bool Studies::Impl::is_attended(const Study& study) const {
    const std::int64_t now_ms = clock_.now_ms();
    if (is_held_since(study, now_ms - kSilentLeases * options_.lease_ttl_ms)) return true;
    if (!phase_.serves) return false;
    // An agent waits for work that this study may give; agents come back soon after a restart.
    if (!study.config().command.empty() && broker_.waiting.lease_polls() > 0) return true;
    return now_ms - heard_ms(study) <= options_.lease_ttl_ms;
}

bool Studies::Impl::is_running_alone(const Study& study) const {
    const bool may_run = phase_.serves && !phase_.draining && !study.is_experiment_deleted();
    return may_run && study.state() == StudyState::kRunning && !is_attended(study);
}

/// When nobody has been heard of for too long, as far as it is known now (monotonic).
std::optional<std::int64_t> Studies::Impl::silence_due_ms(const Study& study) const {
    if (!phase_.serves || study.state() != StudyState::kRunning) return std::nullopt;
    if (study.attendance().is_shown && is_running_alone(study)) return clock_.monotonic_ms();
    for (const std::int64_t leases : {std::int64_t{1}, kSilentLeases}) {
        const std::int64_t left_ms =
            heard_ms(study) + leases * options_.lease_ttl_ms + 1 - clock_.now_ms();
        if (left_ms > 0) return clock_.monotonic_ms() + left_ms;
    }
    return std::nullopt;
}

Result<void> Studies::Impl::read(std::string_view name,
                                 const std::function<void(const Study&)>& read) const {
    const auto lock = lock_.take();
    Study* study = book_.find(name);
    if (study == nullptr) return book_.no_such_study(name);
    study->attendance().is_attended = is_attended(*study);
    read(*study);
    return {};
}

void Studies::Impl::read_all(const std::function<void(const Study&)>& read) const {
    const auto lock = lock_.take();
    std::vector<const Study*> ordered;
    for (const auto& [name, study] : book_.all()) {
        study->attendance().is_attended = is_attended(*study);
        ordered.push_back(study.get());
    }
    std::stable_sort(ordered.begin(), ordered.end(), [](const Study* a, const Study* b) {
        return a->identity().created_ms < b->identity().created_ms;
    });
    for (const Study* study : ordered) read(*study);
}

// --- the end ------------------------------------------------------------------------------------

void Studies::Impl::drain() {
    LockedBatch locked(lock_);
    if (!std::exchange(phase_.draining, true)) lifecycle_.show_interrupted(locked, true);
    suggestions_.give_up(locked);
    expire_polls(locked);
}

void Studies::Impl::stop() {
    drain();
    {
        LockedBatch locked(lock_);
        phase_.stopping = true;
        commits_.stop(locked);
        ticker_.wake();
    }
    ticker_.join();
    replays_.stop();
    suggestions_.stop();
    lock_.stop();
}

}  // namespace tune::tuner
