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

Result<std::unique_ptr<Study>> StudyLoader::read(const tracker::Document& document) const {
    Result<std::unique_ptr<Study>> found = study_from_document(document.json_text);
    if (!found) return Error{Code::kDataLoss, found.error().message, document.key};
    std::unique_ptr<Study> study = std::move(found).value();
    if (study->name() != document.key)
        return Error{Code::kDataLoss, "it is the document of study '" + study->name() + "'",
                     document.key};
    TUNE_TRY_VOID(read_trials(*study));
    study->suggestions().suggest_elsewhere();
    const auto experiment = store_.get_experiment(study->identity().experiment_id);
    study->set_experiment_deleted(!experiment ||
                                  experiment->lifecycle_stage != tracker::LifecycleStage::kActive);
    return Result<std::unique_ptr<Study>>(std::move(study));
}

Result<Study*> StudyLoader::load(const tracker::Document& document) {
    TUNE_TRY(study, read(document));
    for (std::size_t begin = 0; begin < study->trials().size(); begin += kLoadSlice)
        index_slice(*study, begin);
    return &admit(std::move(study));
}

void StudyLoader::index(Study& study) {
    for (std::size_t begin = 0; begin < study.trials().size(); begin += kLoadSlice) {
        const auto lock = lock_.take();
        index_slice(study, begin);
    }
}

void StudyLoader::index_slice(Study& study, std::size_t begin) {
    const std::size_t end = std::min(study.trials().size(), begin + kLoadSlice);
    for (std::size_t number = begin; number < end; ++number) {
        Trial& trial = *study.find(number);
        if (!is_ended(trial.state) || trial.run_id.empty()) continue;
        book_.index_run(study, trial);
        events_.follow(study, trial);
    }
}

void StudyLoader::forget_index(Study& study) {
    for (std::size_t begin = 0; begin < study.trials().size(); begin += kLoadSlice) {
        const auto lock = lock_.take();
        book_.forget_runs(study, begin, begin + kLoadSlice);
    }
}

/// A live lease begins anew: its agent could not renew it while no server was there.
Study& StudyLoader::admit(std::unique_ptr<Study> admitted) {
    Study& study = book_.add(std::move(admitted));
    const auto take_in = [&](std::uint64_t number) {
        Trial& trial = *study.find(number);
        book_.admit(study, trial);
        book_.index_run(study, trial);
        events_.follow(study, trial);
        if (trial.progress->holder.ttl_ms > 0) events_.begin_lease(trial);
    };
    for (const std::uint64_t number : study.trials().queued()) take_in(number);
    for (const std::uint64_t number : study.trials().running()) take_in(number);
    return study;
}

Result<void> StudyLoader::read_trials(Study& study) const {
    {
        TUNE_TRY(documents,
                 store_.list_documents(kTrialCollection, trial_key_prefix(study.identity())));
        for (const tracker::Document& document : documents) {
            Result<Trial> trial = trial_from_document(document.json_text);
            if (!trial) return Error{Code::kDataLoss, trial.error().message, document.key};
            const Result<void> fits = study.definition().bring_up(*trial);
            if (!fits) return Error{Code::kDataLoss, fits.error().message, document.key};
            if (!has_all_values(*trial, study.config()))
                return Error{Code::kDataLoss,
                             "a complete trial lacks values of the study's metrics", document.key};
            study.restore(std::move(trial).value());
        }
    }
    for (std::uint64_t number = 0; number < study.trials().size(); ++number) {
        Trial& trial = *study.find(number);
        study.needs().note_peaks(trial);
        if (!is_ended(trial.state)) TUNE_TRY_VOID(read_progress(study, trial));
    }
    const bool is_needed =
        study.state() == StudyState::kRunning || !study.trials().running().empty();
    if (is_needed && with_reports(study).size() <= kHistoryAtOnceMax) load_history(study);
    study.complete_if_done(clock_.now_ms());
    return {};
}

Result<void> StudyLoader::read_progress(Study& study, Trial& trial) const {
    const Holder& holder = trial.progress->holder;
    // One of its agents has told of a fault, and the others may not know yet.
    if (holder.verdict && holder.verdict->outcome != Outcome::kDone)
        trial.progress->directive = Directive{.run_id = trial.run_id,
                                              .attempt = trial.attempt,
                                              .action = Action::kStop,
                                              .reason = holder.verdict->reason};
    if (trial.attempt == 0) return {};
    for (const std::string& name : measured_metrics(study.config())) {
        TUNE_TRY(history, marked_history(trial.run_id, name));
        read_metric(trial, name, history);
    }
    const auto& cost = study.config().budget.cost;
    if (!cost || cost->of != CostBudget::Of::kMetric) return {};
    TUNE_TRY(costs, marked_history(trial.run_id, cost->metric));
    for (const tracker::Metric& metric : costs.before)
        trial.progress->note_cost(metric.step, metric.value);
    for (const auto& [mark, metric] : costs.since)
        if (mark != kNoAttemptMark) trial.progress->note_cost(metric.step, metric.value);
    return {};
}

Result<tracker::MarkedHistory> StudyLoader::marked_history(const std::string& run_id,
                                                           const std::string& metric) const {
    return store_.snapshot([&](tracker::sqlite::Connection& connection) {
        return tracker::marked_history(connection, run_id, metric);
    });
}

/// As it was observed: in the order of the log, each attempt taking back what its first row says.
/// Without a mark it is a trial that ran once, or of a server that told rows apart by their time.
void StudyLoader::read_metric(Trial& trial, const std::string& name,
                              const tracker::MarkedHistory& history) {
    ResultMetrics& metrics = trial.progress->metrics;
    const auto row_of = [](const tracker::Metric& metric) {
        return Objective::Row{metric.step, metric.timestamp_ms, metric.value};
    };
    for (const tracker::Metric& metric : history.before)
        if (!is_rolled_back(trial.roll_backs, name, row_of(metric)))
            metrics.add(name, row_of(metric));
    for (const auto& [mark, metric] : history.since) {
        if (mark == kNoAttemptMark) continue;
        static_cast<void>(metrics.roll_back(name, metric.step, static_cast<int>(mark)));
        metrics.add(name, row_of(metric));
    }
    if (history.mark || trial.attempt == 1) return;
    trial.progress->is_unmarked = true;
    const bool has_begun = std::any_of(
        trial.roll_backs.begin(), trial.roll_backs.end(),
        [&](const RollBack& one) { return one.metric == name && one.attempt == trial.attempt; });
    const bool has_rows =
        !history.before.empty() && history.before.back().timestamp_ms > trial.attempt_start_ms;
    if (has_begun || has_rows) metrics.go_on(name, trial.attempt);
}

/// Whether a pruner wants to know its reports. Most trials of large studies report only once, at
/// their end; those that never did are known by their documents.
bool StudyLoader::may_have_reported(const Trial& trial) {
    const bool measures =
        trial.state != TrialState::kFailed && trial.state != TrialState::kCancelled;
    return measures && (trial.last_step || !is_ended(trial.state)) && trial.attempt > 0;
}

std::vector<StudyLoader::Snapshot> StudyLoader::with_reports(const Study& study) {
    std::vector<Snapshot> trials;
    for (const Trial& trial : study.trials())
        if (may_have_reported(trial)) trials.push_back({trial.run_id, trial.number});
    return trials;
}

/// The same without the lock at first, a part at a time. A trial that is new meanwhile is none of
/// the past.
std::vector<StudyLoader::Snapshot> StudyLoader::take_with_reports(const Study& study) {
    std::vector<Snapshot> trials;
    std::size_t count = 0;
    {
        const auto lock = lock_.take();
        count = study.trials().size();
    }
    for (std::size_t begin = 0; begin < count; begin += kLoadSlice) {
        const auto lock = lock_.take();
        for (std::size_t number = begin; number < std::min(count, begin + kLoadSlice); ++number) {
            const Trial& trial = study.trials()[number];
            if (may_have_reported(trial)) trials.push_back({trial.run_id, trial.number});
        }
    }
    return trials;
}

/// Tells the pruner what was reported before.
void StudyLoader::load_history(Study& study) const {
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
        study.pruner().add_reports(study.trials()[trial.number], study.config().metric.name, rows);
    }
    while (!study.pruner().replay(study.trials(), kHistorySlice)) {
    }
}

/// Before trials start again after a rest or with another pruner: the pruner observes the history,
/// on a reader thread.
void StudyLoader::prepare(LockedBatch& locked, Study& study) {
    if (!study.pruner().is_behind()) return;
    auto job = [this, &study, hold = book_.retired().hold(), version = study.pruner().version(),
                metric = study.config().metric.name] {
        for (const Snapshot& trial : take_with_reports(study)) {
            const auto history = store_.metric_history(trial.run_id, metric);
            if (!history) continue;
            std::vector<Objective::Row> rows;
            for (const tracker::Metric& point : history->items)
                rows.push_back({point.step, point.timestamp_ms, point.value});
            const auto lock = lock_.take();
            if (study.pruner().version() != version)
                return;  // the change asks for the history anew
            study.pruner().add_reports(study.trials()[trial.number], metric, rows);
        }
        for (bool is_known = false; !is_known;) {
            const auto lock = lock_.take();
            is_known = phase_.stopping || study.pruner().version() != version ||
                       study.pruner().replay(study.trials(), kHistorySlice);
        }
    };
    locked.after([this, job = std::move(job)] {
        if (!store_.post_read(job))
            log_warning("the pruner starts without its history: the server is busy");
    });
}

}  // namespace tune::tuner
