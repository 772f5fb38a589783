// A study in memory is its document, its trials' documents, and of trials that have not ended what
// they logged so far. Pruners know the past by its reports: those of a small study are read before
// the server answers, those of a large one on a reader thread in slices, so that nobody waits.

#include "tuner/study/registry/lifecycle/study_loader.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "tuner/study/journal/journal.h"

namespace tune::tuner {
namespace {

/// Trials whose reports are read before a server answers: about 0.3 s.
constexpr std::size_t kHistoryAtOnceMax = 1000;
/// Reports that a pruner observes before other calls get their turn.
constexpr std::size_t kHistorySlice = 10'000;

bool has_all_values(const Trial& trial, const StudyConfig& config) {
    return trial.state != TrialState::kComplete ||
           (trial.more_values.size() == config.more_metrics.size() &&
            trial.constraint_values.size() == config.constraints.size());
}

}  // namespace

Result<Study*> StudyLoader::load(const tracker::Document& document) {
    Result<Study> read = study_from_document(document.json_text);
    if (!read) return Error{Code::kDataLoss, read.error().message, document.key};
    auto study = std::make_unique<Study>(std::move(read).value());
    if (study->name() != document.key)
        return Error{Code::kDataLoss, "it is the document of study '" + study->name() + "'",
                     document.key};
    if (Result<void> loaded = load_trials(*study); !loaded) {
        book_.forget_runs(*study);
        return loaded.error();
    }
    study->suggest_elsewhere();
    const auto experiment = store_.get_experiment(study->identity().experiment_id);
    study->set_experiment_deleted(!experiment ||
                                  experiment->lifecycle_stage != tracker::LifecycleStage::kActive);
    return &book_.add(std::move(study));
}

Result<void> StudyLoader::load_trials(Study& study) {
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
        book_.admit(study, trial);
        book_.index_run(study, trial);
        events_.follow(study, trial);
        study.note_peaks(trial);
        if (!is_ended(trial.state)) TUNE_TRY_VOID(load_progress(study, trial));
    }
    const bool is_needed = study.state() == StudyState::kRunning || !study.running().empty();
    if (is_needed && with_reports(study).size() <= kHistoryAtOnceMax) load_history(study);
    study.complete_if_done(clock_.now_ms());
    return {};
}

/// A live lease begins anew: its agent could not renew it while no server was there.
Result<void> StudyLoader::load_progress(Study& study, Trial& trial) {
    Holder& holder = trial.progress->holder;
    if (holder.ttl_ms > 0) events_.begin_lease(trial);
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

/// The trials whose reports a pruner wants to know. Most trials of large studies report only once,
/// at their end; those that never did are known by their documents.
std::vector<StudyLoader::Snapshot> StudyLoader::with_reports(const Study& study) {
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

/// Tells the pruner what was reported before.
void StudyLoader::load_history(Study& study) {
    if (!study.pruner().is_behind()) return;
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

/// Before trials start again after a rest or with another pruner: the pruner observes the history,
/// on a reader thread.
void StudyLoader::prepare(LockedBatch& locked, Study& study) {
    if (!study.pruner().is_behind()) return;
    auto job = [this, &study, hold = book_.retired().hold(), trials = with_reports(study),
                version = study.pruner().version(), metric = study.config().metric.name] {
        for (const Snapshot& trial : trials) {
            const auto history = store_.metric_history(trial.run_id, metric);
            if (!history) continue;
            std::vector<Objective::Row> rows;
            for (const tracker::Metric& point : history->items)
                rows.push_back({point.step, point.timestamp_ms, point.value});
            const auto lock = lock_.take();
            if (study.pruner().version() != version)
                return;  // the change asks for the history anew
            study.replay_reports(trial.number, rows);
        }
        for (bool is_known = false; !is_known;) {
            const auto lock = lock_.take();
            is_known = phase_.stopping || study.pruner().version() != version ||
                       study.replay_history(kHistorySlice);
        }
    };
    locked.after([this, job = std::move(job)] {
        if (!store_.post_read(job))
            log_warning("the pruner starts without its history: the server is busy");
    });
}

}  // namespace tune::tuner
