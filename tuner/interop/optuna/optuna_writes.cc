// An import is several transactions, since a study may be larger than one. A note is written first
// and the study's own document last; a start that finds a note without its study deletes what the
// import had written. A reader therefore sees either no study or all of it.

#include "tuner/interop/optuna/optuna_writes.h"

#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/system/user_name.h"
#include "base/text/utf8.h"
#include "tuner/study/journal/journal.h"
#include "tuner/study/study.h"

namespace tune::tuner {
namespace {

using tracker::Command;

/// Commands of one transaction before it is sent: enough that fsync does not count, and room for
/// one more trial of many parameters below tracker::kAtomicCommandsMax.
constexpr std::size_t kCommandsOfBatch = 1000;

/// Notes of imports under way, by the id of the study.
constexpr const char* kImportCollection = "tune.optuna_imports";

/// Collects commands and sends them in transactions of about kCommandsOfBatch.
class Batches {
public:
    Batches(tracker::Store& store, const std::function<bool()>& is_cancelled)
        : store_(store), is_cancelled_(is_cancelled) {}

    void add(std::vector<Command> more) {
        std::move(more.begin(), more.end(), std::back_inserter(commands_));
    }
    void add(Command one) { commands_.push_back(std::move(one)); }
    Result<void> send_if_many() {
        if (commands_.size() < kCommandsOfBatch) return {};
        if (is_cancelled_ && is_cancelled_()) return Error{Code::kCancelled, "interrupted"};
        return send();
    }
    Result<void> send() {
        if (commands_.empty()) return {};
        TUNE_TRY_VOID(store_.execute(tracker::Atomic{std::exchange(commands_, {})}));
        return {};
    }

private:
    tracker::Store& store_;
    const std::function<bool()>& is_cancelled_;
    std::vector<Command> commands_;
};

Result<std::int64_t> experiment_for(tracker::Store& store, const std::string& name) {
    // The name of a deleted one is free.
    const auto found = store.get_experiment_by_name(name);
    if (found && found->lifecycle_stage == tracker::LifecycleStage::kActive)
        return found->experiment_id;
    TUNE_TRY(made, store.execute(tracker::CreateExperiment{.name = name}));
    return std::get<tracker::ExperimentId>(made);
}

/// The trial as the study's journal holds it; its suggestion was not ours.
Trial trial_of(const ImportedTrial& from, std::uint64_t number) {
    Trial trial;
    trial.number = number;
    trial.state = from.state;
    trial.attempt = 1;
    trial.run_id = random_hex(16);
    trial.point = from.point;
    trial.fixed = from.point;
    trial.created_ms = from.start_ms;
    trial.start_ms = from.start_ms;
    trial.attempt_start_ms = from.start_ms;
    trial.end_ms = from.end_ms;
    trial.reason = from.reason;
    if (!from.values.empty()) trial.value = from.values.front();
    if (!from.intermediate.empty()) {
        trial.last_step = from.intermediate.back().first;
        trial.last_value = from.intermediate.back().second;
    }
    return trial;
}

/// A complete trial has one value an objective and one a constraint; else its result is unknown.
void keep_values(Trial& trial, const ImportedTrial& from, const StudyConfig& config) {
    if (trial.state != TrialState::kComplete) return;
    const bool is_whole = from.values.size() == 1 + config.more_metrics.size() &&
                          from.constraints.size() == config.constraints.size();
    if (is_whole) {
        trial.more_values.assign(from.values.begin() + 1, from.values.end());
        trial.constraint_values = from.constraints;
        return;
    }
    trial.state = TrialState::kFailed;
    trial.value.reset();
    trial.reason = "the file does not hold all values of its objectives and constraints";
}

/// As if they had been asked in order of number and ended in order of time.
void number_events(std::vector<Trial>& trials) {
    std::vector<Trial*> ends;
    std::int64_t position = 0;
    for (Trial& trial : trials) {
        trial.asked_at = ++position;
        ends.push_back(&trial);
    }
    std::stable_sort(ends.begin(), ends.end(),
                     [](const Trial* a, const Trial* b) { return a->end_ms < b->end_ms; });
    for (Trial* trial : ends) trial->ended_at = ++position;
}

/// At most what a tag holds, not cut within a character.
std::string tag_text(const std::string& text) {
    return std::string(cut_to_bytes(text, kRunTagValueCharsMax));
}

void add_tags(std::vector<Command>& commands, const std::string& run_id,
              const std::vector<std::pair<std::string, std::string>>& tags) {
    tracker::LogBatch batch{.run_id = run_id};
    for (const auto& [key, value] : tags) {
        if (key.empty() || key.size() > kKeyCharsMax) continue;
        batch.tags.push_back({key, tag_text(value)});
        if (batch.tags.size() < kBatchTagsMax) continue;
        commands.push_back(std::exchange(batch, {.run_id = run_id}));
    }
    if (!batch.tags.empty()) commands.push_back(std::move(batch));
}

void add_values(std::vector<Command>& commands, const Study& study, const Trial& trial,
                const ImportedTrial& from) {
    tracker::LogBatch batch{.run_id = trial.run_id};
    const std::string& metric = study.config().metric.name;
    const auto add = [&](std::int64_t step, double value) {
        batch.metrics.push_back(
            {.key = metric, .value = value, .timestamp_ms = trial.end_ms, .step = step});
        if (batch.metrics.size() < kBatchMetricsMax) return;
        commands.push_back(std::exchange(batch, {.run_id = trial.run_id}));
    };
    for (const auto& [step, value] : from.intermediate) add(step, value);
    if (from.intermediate.empty() && trial.value) add(0, *trial.value);
    for (std::size_t i = 0; i < trial.more_values.size(); ++i)
        batch.metrics.push_back({.key = study.config().more_metrics.at(i).name,
                                 .value = trial.more_values[i],
                                 .timestamp_ms = trial.end_ms,
                                 .step = 0});
    for (std::size_t i = 0; i < trial.constraint_values.size(); ++i)
        batch.metrics.push_back({.key = study.config().constraints.at(i).metric.name,
                                 .value = trial.constraint_values[i],
                                 .timestamp_ms = trial.end_ms,
                                 .step = 0});
    commands.push_back(std::move(batch));
    add_tags(commands, trial.run_id, from.tags);
}

Result<void> check_free(const tracker::Store& store, const std::string& name) {
    TUNE_TRY(studies, store.list_documents(kStudyCollection));
    for (const tracker::Document& document : studies)
        if (document.key == name)
            return Error{
                Code::kResourceAlreadyExists,
                "there is a study '" + name + "' already; choose another name with --as NAME"};
    return {};
}

Result<bool> has_runs(tracker::Store& store, tracker::ExperimentId experiment) {
    TUNE_TRY(found, store.search_runs({.experiment_ids = {experiment}, .max_results = 1}));
    return !found.items.empty();
}

/// One import that broke off; its note goes last.
Result<void> undo(tracker::Store& store, const std::string& id, const Json& note) {
    const std::function<bool()> never;
    Batches batches(store, never);
    TUNE_TRY(documents, store.list_documents(kTrialCollection, id + "/"));
    for (const tracker::Document& document : documents) {
        const Result<Json> trial = parse_json(document.json_text);
        const std::string run_id = trial ? trial->value("run_id", "") : "";
        const auto run = store.get_run(run_id);
        if (run && run->info.lifecycle_stage == tracker::LifecycleStage::kActive)
            batches.add(tracker::DeleteRun{run_id});
        batches.add(tracker::DeleteDocument{kTrialCollection, document.key});
        TUNE_TRY_VOID(batches.send_if_many());
    }
    TUNE_TRY_VOID(batches.send());
    const auto experiment = store.get_experiment_by_name(note.value("study", ""));
    if (note.value("makes_experiment", false) && experiment &&
        experiment->lifecycle_stage == tracker::LifecycleStage::kActive) {
        TUNE_TRY(is_used, has_runs(store, experiment->experiment_id));
        if (!is_used) batches.add(tracker::DeleteExperiment{experiment->experiment_id});
    }
    batches.add(tracker::DeleteDocument{kImportCollection, id});
    return batches.send();
}

/// Everything between the note and the study's own document.
Result<void> store_trials(tracker::Store& store, const ImportedStudy& imported, Study& study,
                          const std::function<bool()>& is_cancelled, Studies* studies) {
    std::vector<Trial> trials;
    std::vector<const ImportedTrial*> sources;
    for (const ImportedTrial& from : imported.trials) {
        if (from.state == TrialState::kQueued) continue;
        trials.push_back(trial_of(from, trials.size()));
        keep_values(trials.back(), from, study.config());
        sources.push_back(&from);
    }
    number_events(trials);
    Batches batches(store, is_cancelled);
    for (std::size_t i = 0; i < trials.size(); ++i) {
        std::vector<Command> one = create_trial_commands(study, trials[i]);
        add_values(one, study, trials[i], *sources[i]);
        batches.add(std::move(one));
        study.restore(std::move(trials[i]));
        TUNE_TRY_VOID(batches.send_if_many());
    }
    const std::int64_t now_ms = SystemClock().now_ms();
    for (const ImportedTrial& from : imported.trials) {
        if (from.state != TrialState::kQueued) continue;
        TUNE_TRY(added, study.enqueue(from.point, {}, now_ms));
        added->run_id = random_hex(16);
        batches.add(create_trial_commands(study, *added));
        TUNE_TRY_VOID(batches.send_if_many());
    }
    study.set_state(StudyState::kPaused, "imported from Optuna; resume it to continue");
    std::vector<Command> last_batch = create_study_commands(study);
    auto document = std::get<tracker::PutDocument>(std::move(last_batch.back()));
    last_batch.pop_back();
    add_tags(last_batch, study.identity().run_id, imported.tags);
    batches.add(std::move(last_batch));
    if (!study.front().empty()) batches.add(best_trial_command(study, now_ms));
    const tracker::DeleteDocument note{kImportCollection, study.identity().id};
    if (studies == nullptr) {
        batches.add(std::move(document));
        batches.add(note);
        return batches.send();
    }
    TUNE_TRY_VOID(batches.send());
    std::promise<Result<void>> taken;
    studies->take_in(std::move(document), note,
                     [&taken](Result<void> result) { taken.set_value(std::move(result)); });
    return taken.get_future().get();
}

}  // namespace

Result<void> store_imported(tracker::Store& store, const ImportedStudy& imported,
                            const std::function<bool()>& is_cancelled, Studies* studies) {
    StudyConfig config = imported.config;
    TUNE_TRY_VOID(check_study(config, false));
    TUNE_TRY_VOID(check_free(store, config.study));
    StudyIdentity identity{.name = config.study,
                           .id = random_hex(8),
                           .run_id = random_hex(16),
                           .seed = config.sampler.seed.value_or(0),
                           .created_ms = SystemClock().now_ms(),
                           .user = user_name()};
    if (!config.sampler.seed) identity.seed = std::stoull(random_hex(8), nullptr, 16) & kSeedMax;
    config.sampler.seed = identity.seed;
    // It may have been gone on with beyond the budget that it came with.
    if (config.budget.trials)
        config.budget.trials =
            std::max<std::uint64_t>(*config.budget.trials, imported.trials.size());
    const Json note = {
        {"study", identity.name},
        {"makes_experiment", !store.get_experiment_by_name(identity.name).has_value()}};
    TUNE_TRY_VOID(
        store.execute(tracker::PutDocument{kImportCollection, identity.id, to_text(note)}));
    const auto write = [&]() -> Result<void> {
        TUNE_TRY(experiment, experiment_for(store, identity.name));
        identity.experiment_id = experiment;
        Study study(identity, std::move(config));
        return store_trials(store, imported, study, is_cancelled, studies);
    };
    Result<void> written = write();
    if (!written) TUNE_TRY_VOID(undo(store, identity.id, note));
    return written;
}

Result<std::vector<std::string>> undo_imports(tracker::Store& store) {
    std::vector<std::string> names;
    TUNE_TRY(notes, store.list_documents(kImportCollection));
    for (const tracker::Document& document : notes) {
        TUNE_TRY(note, parse_json(document.json_text));
        TUNE_TRY_VOID(undo(store, document.key, note));
        names.push_back(note.value("study", ""));
    }
    return names;
}

}  // namespace tune::tuner
