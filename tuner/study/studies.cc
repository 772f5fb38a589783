// Opening, and studies as a whole: create, go on, pause, stop, read.

#include "tuner/study/studies.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/id.h"
#include "base/limits.h"
#include "base/log.h"
#include "tuner/study/studies_impl.h"

namespace tune::tuner {
namespace {

/// A name stands in URLs, file names and event topics.
Result<void> check_name(const std::string& name) {
    constexpr std::size_t kNameBytesMax = 200;
    const auto is_bad = [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '/' || c == '\\';
    };
    if (name.empty())
        return Error{Code::kInvalidParameterValue, "the study needs a name (field 'study')"};
    if (name.size() > kNameBytesMax || std::any_of(name.begin(), name.end(), is_bad) ||
        name == "." || name == "..")
        return Error{Code::kInvalidParameterValue,
                     "'" + name.substr(0, kNameBytesMax) +
                         "' cannot name a study: at most 200 bytes, no '/', no '\\' and no "
                         "control characters"};
    return {};
}

std::uint64_t draw_seed() {
    return std::stoull(random_hex(8), nullptr, 16) & kSeedMax;
}

std::string list_of(const std::vector<std::string>& differences) {
    std::string text;
    for (const std::string& difference : differences)
        text += (text.empty() ? "" : "; ") + difference;
    return text;
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
        Result<Study> read = study_from_document(document.json_text);
        if (!read) return Error{Code::kDataLoss, read.error().message, document.key};
        auto study = std::make_unique<Study>(std::move(read).value());
        TUNE_TRY_VOID(load_trials(*study));
        studies_.emplace(document.key, std::move(study));
    }
    seen_position_ = store_.last_position();
    return {};
}

Result<void> Studies::Impl::load_trials(Study& study) {
    {
        TUNE_TRY(documents,
                 store_.list_documents(kTrialCollection, trial_key_prefix(study.identity())));
        for (const tracker::Document& document : documents) {
            Result<Trial> trial = trial_from_document(document.json_text);
            if (!trial) return Error{Code::kDataLoss, trial.error().message, document.key};
            const Result<void> fits = study.config().space.check(trial->point);
            if (!fits) return Error{Code::kDataLoss, fits.error().message, document.key};
            study.restore(std::move(trial).value());
        }
    }
    for (std::uint64_t number = 0; number < study.trials().size(); ++number) {
        Trial& trial = *study.find(number);
        admit(study, trial);
        index_run(study, trial);
        if (!is_ended(trial.state)) TUNE_TRY_VOID(load_progress(study, trial));
    }
    if (study.state() == StudyState::kRunning || !study.running().empty()) load_history(study);
    study.complete_if_done(now_ms());
    return {};
}

/// A live lease begins anew: its agent could not renew it while no server was there.
Result<void> Studies::Impl::load_progress(Study& study, Trial& trial) {
    Holder& holder = trial.progress->holder;
    if (holder.ttl_ms > 0) holder.expires_ms = monotonic_ms() + holder.ttl_ms;
    if (trial.attempt == 0) return {};
    TUNE_TRY(history, store_.metric_history(trial.run_id, study.config().metric.name));
    for (const tracker::Metric& metric : history.items)
        trial.progress->objective.add({metric.step, metric.timestamp_ms, metric.value});
    return {};
}

/// On a reader thread, in slices, so that calls get their turn.
void Studies::Impl::warm_up() {
    constexpr std::size_t kSlice = 500;
    std::vector<Study*> running;
    {
        const Turn turn(*this);
        for (const auto& [name, study] : studies_)
            if (study->state() == StudyState::kRunning) running.push_back(study.get());
    }
    for (Study* study : running) {
        for (bool is_warm = false; !is_warm;) {
            const Turn turn(*this);
            is_warm = stopping_ || study->warm_up(kSlice);
        }
    }
}

/// Tells the pruner what was reported before.
void Studies::Impl::load_history(Study& study) {
    if (!study.needs_history()) return;
    for (const Trial& trial : study.trials()) {
        if (trial.state == TrialState::kFailed || trial.state == TrialState::kCancelled) continue;
        if (trial.attempt == 0) continue;
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
    study.history_complete();
}

void Studies::Impl::index_run(Study& study, Trial& trial) {
    by_run_.emplace(std::string_view(trial.run_id), TrialRef{&study, &trial});
}

// --- create --------------------------------------------------------------------------------------

Study* Studies::Impl::find_study(std::string_view name) const {
    const auto found = studies_.find(name);
    return found == studies_.end() ? nullptr : found->second.get();
}

Error Studies::Impl::no_such_study(std::string_view name) {
    return {Code::kResourceDoesNotExist,
            "there is no study '" + std::string(name) + "'; `tune ls` lists them"};
}

void Studies::Impl::create(StudyConfig config, Done<Created> done) {
    Result<void> checked = check_name(config.study);
    if (checked) checked = check_study(config, false);
    if (checked) checked = check_sampler(config.space, config.sampler);
    if (!checked) return done(checked.error());
    Turn turn(*this);
    if (Study* study = find_study(config.study))
        return go_on(turn, *study, std::move(config), std::move(done));
    auto job = [this, config = std::move(config), done]() mutable {
        find_experiment(std::move(config), std::move(done));
    };
    if (store_.post_read(std::move(job))) return;
    turn.after([done = std::move(done)] {
        done(Error{Code::kRequestLimitExceeded, "the server is busy or stopping; try again"});
    });
}

/// On a reader thread: the experiment of the study's name is used, or made.
void Studies::Impl::find_experiment(StudyConfig config, Done<Created> done) {
    const auto experiment = store_.get_experiment_by_name(config.study);
    if (experiment) {
        if (experiment->lifecycle_stage == tracker::LifecycleStage::kDeleted)
            return done(Error{Code::kResourceConflict,
                              "the experiment '" + config.study +
                                  "' is deleted; restore it or give the study another name"});
        return create_in_experiment(std::move(config), experiment->experiment_id, std::move(done));
    }
    if (experiment.error().code != Code::kResourceDoesNotExist) return done(experiment.error());
    const std::string name = config.study;
    store_.submit(tracker::CreateExperiment{.name = name},
                  [this, config = std::move(config),
                   done = std::move(done)](const Result<tracker::Outcome>& outcome) mutable {
                      if (outcome)
                          return create_in_experiment(std::move(config),
                                                      std::get<tracker::ExperimentId>(*outcome),
                                                      std::move(done));
                      if (outcome.error().code != Code::kResourceAlreadyExists)
                          return done(outcome.error());
                      auto again = [this, config = std::move(config), done]() mutable {
                          find_experiment(std::move(config), std::move(done));
                      };
                      if (!store_.post_read(std::move(again)))
                          done(Error{Code::kRequestLimitExceeded, "the server is busy; try again"});
                  });
}

void Studies::Impl::create_in_experiment(StudyConfig config, std::int64_t experiment_id,
                                         Done<Created> done) {
    Turn turn(*this);
    if (Study* study = find_study(config.study))  // another client was faster
        return go_on(turn, *study, std::move(config), std::move(done));
    StudyIdentity identity{.name = config.study,
                           .id = random_hex(8),
                           .run_id = random_hex(16),
                           .experiment_id = experiment_id,
                           .seed = config.sampler.seed ? *config.sampler.seed : draw_seed(),
                           .created_ms = now_ms()};
    config.sampler.seed = identity.seed;
    auto made = std::make_unique<Study>(std::move(identity), std::move(config));
    Study& study = *made;
    studies_.emplace(study.name(), std::move(made));
    write(turn, create_study_commands(study),
          [this, &study, done = std::move(done)](Turn& later, Result<void> result) {
              if (!result) {
                  const auto found = studies_.find(study.name());
                  refused_.push_back(std::move(found->second));
                  studies_.erase(found);
                  return later.after([done, error = result.error()] { done(error); });
              }
              make_known(later, study, nullptr);
              wake_leases(later);
              later.after([done, name = study.name()] { done(Created{name, true}); });
          });
}

void Studies::Impl::go_on(Turn& turn, Study& study, StudyConfig config, Done<Created> done) {
    const std::vector<std::string> differences = study.differences(config);
    if (!differences.empty())
        return turn.after(
            [done, error = Error{Code::kResourceConflict,
                                 "study '" + study.name() +
                                     "' exists and is another one: " + list_of(differences) +
                                     ". Give this one another name, or undo the "
                                     "change to go on with it."}] { done(error); });
    study.reconfigure(std::move(config));
    study.set_state(StudyState::kRunning);
    prepare(turn, study);
    study.complete_if_done(now_ms());
    write_study(turn, study, [done, name = study.name()](Turn& later, Result<void> result) {
        later.after([done, name, result = std::move(result)] {
            if (!result) return done(result.error());
            done(Created{name, false});
        });
    });
    after_change(turn, study);
}

/// Before trials start again after a rest or with another pruner: the pruner is told the history,
/// on a reader thread.
void Studies::Impl::prepare(Turn& turn, Study& study) {
    if (!study.needs_history()) return;
    std::vector<Snapshot> trials;
    for (const Trial& trial : study.trials()) {
        const bool measures =
            trial.state != TrialState::kFailed && trial.state != TrialState::kCancelled;
        if (measures && trial.attempt > 0) trials.push_back({trial.run_id, trial.number});
    }
    auto job = [this, &study, trials = std::move(trials), metric = study.config().metric.name] {
        for (const Snapshot& trial : trials) {
            const auto history = store_.metric_history(trial.run_id, metric);
            if (!history) continue;
            std::vector<Objective::Row> rows;
            for (const tracker::Metric& point : history->items)
                rows.push_back({point.step, point.timestamp_ms, point.value});
            const Turn step(*this);
            study.replay_reports(trial.number, rows);
        }
        const Turn last(*this);
        study.history_complete();
    };
    turn.after([this, job = std::move(job)] {
        if (!store_.post_read(job)) log_warning("the pruner starts without its history: busy");
    });
}

// --- change and read -----------------------------------------------------------------------------

void Studies::Impl::change(const std::string& name, Change change, Done<void> done) {
    Turn turn(*this);
    Study* study = find_study(name);
    if (study == nullptr) return turn.after([done, name] { done(no_such_study(name)); });
    const bool is_completed = study->state() == StudyState::kCompleted;
    if (change == Change::kResume) {
        study->set_state(StudyState::kRunning);
        prepare(turn, *study);
        study->complete_if_done(now_ms());
    } else if (is_completed) {
        return turn.after([done, name] {
            done(Error{Code::kResourceConflict, "study '" + name + "' is completed already"});
        });
    } else {
        study->set_state(change == Change::kPause ? StudyState::kPaused : StudyState::kStopped);
    }
    write_study(turn, *study, [done](Turn& later, Result<void> result) {
        later.after([done, result = std::move(result)] { done(result); });
    });
    if (study->state() == StudyState::kStopped) {
        const std::set<std::uint64_t> running = study->running();
        for (const std::uint64_t number : running)
            direct(turn, *study, *study->find(number), Action::kStop, "the study was stopped");
    }
    after_change(turn, *study);
}

void Studies::Impl::wait(const std::string& name, std::int64_t version, std::int64_t wait_ms,
                         Done<void> done) {
    Turn turn(*this);
    const Study* study = find_study(name);
    if (study == nullptr) return turn.after([done, name] { done(no_such_study(name)); });
    if (study->version() != version || wait_ms <= 0 || draining_)
        return turn.after([done] { done({}); });
    const std::int64_t longest_ms = std::min<std::int64_t>(wait_ms, kLongPollMax_ms);
    study_polls_.push_back({study, monotonic_ms() + longest_ms, std::move(done)});
    ticker_wake_.notify_one();
}

Result<void> Studies::Impl::read(std::string_view name,
                                 const std::function<void(const Study&)>& read) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Study* study = find_study(name);
    if (study == nullptr) return no_such_study(name);
    read(*study);
    return {};
}

void Studies::Impl::read_all(const std::function<void(const Study&)>& read) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<const Study*> ordered;
    for (const auto& [name, study] : studies_) ordered.push_back(study.get());
    std::stable_sort(ordered.begin(), ordered.end(), [](const Study* a, const Study* b) {
        return a->identity().created_ms < b->identity().created_ms;
    });
    for (const Study* study : ordered) read(*study);
}

// --- the public face -----------------------------------------------------------------------------

Studies::Studies(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Studies::~Studies() = default;

Result<std::unique_ptr<Studies>> Studies::open(StudiesOptions options) {
    TUNE_CHECK(options.store != nullptr, "Studies needs a store");
    auto impl = std::make_unique<Impl>(std::move(options));
    TUNE_TRY_VOID(impl->load());
    impl->observe_store();
    impl->start_ticker();
    return std::unique_ptr<Studies>(new Studies(std::move(impl)));
}

void Studies::warm_up() {
    if (!impl_->start_warming_up()) log_warning("the first suggestions take longer: busy");
}
void Studies::drain() {
    impl_->drain();
}
void Studies::stop() {
    impl_->stop();
}
void Studies::create(StudyConfig config, Done<Created> done) {
    impl_->create(std::move(config), std::move(done));
}
void Studies::change(const std::string& study, Change change, Done<void> done) {
    impl_->change(study, change, std::move(done));
}
Result<void> Studies::read(std::string_view study,
                           const std::function<void(const Study&)>& read) const {
    return impl_->read(study, read);
}
void Studies::read_all(const std::function<void(const Study&)>& read) const {
    impl_->read_all(read);
}
void Studies::wait(const std::string& study, std::int64_t version, std::int64_t wait_ms,
                   Done<void> done) {
    impl_->wait(study, version, wait_ms, std::move(done));
}
void Studies::ask(AskRequest request, Done<std::vector<AskedTrial>> done) {
    impl_->ask(std::move(request), std::move(done));
}
void Studies::report(ClientReport report, Done<std::optional<Action>> done) {
    impl_->report(std::move(report), std::move(done));
}
void Studies::tell(TellRequest request, Done<void> done) {
    impl_->tell(std::move(request), std::move(done));
}
void Studies::enqueue(const std::string& study, const std::string& params_json,
                      std::string request_id, Done<AskedTrial> done) {
    impl_->enqueue(study, params_json, std::move(request_id), std::move(done));
}
void Studies::register_agent(RegisterRequest request, Done<RegisterReply> done) {
    impl_->register_agent(std::move(request), std::move(done));
}
void Studies::lease(const std::string& agent_id, LeaseRequest request, Done<LeaseReply> done) {
    impl_->lease(agent_id, std::move(request), std::move(done));
}
void Studies::heartbeat(const std::string& agent_id, HeartbeatRequest request,
                        Done<HeartbeatReply> done) {
    impl_->heartbeat(agent_id, std::move(request), std::move(done));
}
void Studies::report_metrics(const std::string& agent_id, ReportRequest request,
                             Done<ReportReply> done) {
    impl_->report_metrics(agent_id, std::move(request), std::move(done));
}
void Studies::finish(const std::string& agent_id, const AttemptId& attempt, FinishRequest request,
                     Done<void> done) {
    impl_->finish(agent_id, attempt, std::move(request), std::move(done));
}
void Studies::tick() {
    impl_->tick();
}

}  // namespace tune::tuner
