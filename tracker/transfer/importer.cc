// Resumable because each record and its journal entry are one transaction: what the journal lists
// is in the store, what it does not list is imported again as an update. A run that was in the
// store before is never overwritten; it must be the same run by its digest. Errors of one record
// are reported and left out, errors of the disk end the import.

#include "tracker/transfer/importer.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "tracker/store/commands/validation.h"
#include "tracker/store/reads/read_transfer.h"
#include "tracker/transfer/digest.h"
#include "tracker/transfer/journal.h"
#include "tracker/transfer/store_feed.h"
#include "tracker/transfer/text.h"
#include "tracker/transfer/uri_map.h"
#include "tracker/transfer/verify.h"

namespace tune::tracker {
namespace {

/// Points in one command (1.5 MB); runs with fewer come and finish in one transaction.
constexpr std::size_t kCommandPoints = 65'536;
/// Larger ids of experiments (a file store's have 18 digits) are kept, but these would leave no
/// room to count on.
constexpr ExperimentId kExperimentIdMax = 4'000'000'000'000'000'000;
constexpr const char* kArtifactScheme = "mlflow-artifacts:/";

Error cancelled() {
    return {Code::kCancelled, "interrupted; run the same command again to resume"};
}

class Importer {
public:
    Importer(Source& source, Store& store, const ArtifactStore& artifacts,
             const ImportOptions& options, Journal journal)
        : source_(source),
          store_(store),
          options_(options),
          journal_(std::move(journal)),
          feed_(store),
          mover_(source, artifacts, options.artifact_root, options.artifacts) {}

    Result<TransferReport> run();

private:
    Result<void> settle_experiment(const Experiment& experiment);
    Result<ExperimentId> choose_id(const Experiment& experiment, bool& is_update);
    Result<std::string> free_name(const std::string& name);
    Result<void> import_runs(ExperimentId experiment);
    Result<void> import_run(ExperimentId experiment, const std::string& run_id);
    Result<void> write_run(SourceRun& run, const std::string& stamp, bool is_update);
    Result<bool> is_same_in_store(const SourceRun& run, std::string& digest, std::int64_t& points);
    Result<void> import_models(ExperimentId experiment);
    Result<void> import_model(ExperimentId experiment, const std::string& model_id);
    Result<void> import_registry();
    Result<void> import_registered(const std::string& name);
    Result<std::string> move_files(const ArtifactOwner& owner, const std::string& folder);
    Result<void> visit_points(RunDigest* digest, const Source::VisitPoints& visit);
    void count(const Run& run);
    void report_progress();
    bool is_cancelled() const { return options_.is_cancelled && options_.is_cancelled(); }
    /// Says and forgets an error that concerns one run or model; others end the import.
    Result<void> settle(Result<void> done, const std::string& what);

    Source& source_;
    Store& store_;
    const ImportOptions& options_;
    Journal journal_;
    StoreFeed feed_;
    ArtifactMover mover_;
    UriMap uris_;
    TransferReport report_;
    TransferProgress progress_;
    std::vector<Expected> expected_;
};

void Importer::report_progress() {
    if (options_.on_progress) options_.on_progress(progress_);
}

Result<void> Importer::settle(Result<void> done, const std::string& what) {
    if (done) return {};
    const Code code = done.error().code;
    if (code != Code::kDataLoss && code != Code::kInvalidParameterValue &&
        code != Code::kResourceAlreadyExists)
        return done;
    report_.failed.add(what + ": " + done.error().text());
    return {};
}

// --- experiments ---------------------------------------------------------------------------------

Result<std::string> Importer::free_name(const std::string& name) {
    std::string candidate = name;
    for (int i = 1;; ++i) {
        const Result<Experiment> other = store_.get_experiment_by_name(candidate);
        if (!other && other.error().code == Code::kResourceDoesNotExist) return candidate;
        if (!other) return other.error();
        candidate = name + (i == 1 ? " (imported)" : " (imported " + std::to_string(i) + ")");
    }
}

/// The id that the experiment will have. Known before it is made, so that the journal's entry can
/// be in the same transaction: this process is the store's only writer.
Result<ExperimentId> Importer::choose_id(const Experiment& experiment, bool& is_update) {
    const ExperimentId id = experiment.experiment_id;
    is_update = false;
    if (id >= 0 && id <= kExperimentIdMax) {
        const Result<Experiment> other = store_.get_experiment(id);
        if (!other && other.error().code != Code::kResourceDoesNotExist) return other.error();
        if (!other) return id;
        // Every store has "Default": the source's comes into ours.
        is_update = id == 0 && other->name == experiment.name;
        if (is_update) return id;
    }
    return store_.snapshot(next_experiment_id);
}

Result<void> Importer::settle_experiment(const Experiment& source) {
    ++report_.read.experiments;
    if (journal_.target_of(source.experiment_id)) {
        const ExperimentId id = *journal_.target_of(source.experiment_id);
        TUNE_TRY(known, store_.get_experiment(id));
        Experiment update = source;
        update.experiment_id = id;
        update.name = known.name;
        if (id != source.experiment_id || known.name != source.name)
            report_.mapped.push_back({source.experiment_id, id, source.name, known.name});
        expected_.push_back({Journal::Kind::kExperiment, std::to_string(id), {}});
        TUNE_TRY_VOID(store_.execute(ImportRows(ImportExperiment{std::move(update), true})));
        return {};
    }
    bool is_update = false;
    TUNE_TRY(target, choose_id(source, is_update));
    Experiment experiment = source;
    experiment.experiment_id = target;
    if (!is_update) {
        TUNE_TRY(name, free_name(source.name.empty() ? "unnamed" : source.name));
        experiment.name = std::move(name);
        TUNE_TRY(place, source_.list_files({true, "", source.artifact_location}));
        const bool stays = place.place == SourceFiles::Place::kElsewhere ||
                           options_.artifacts == ArtifactMode::kNone;
        if (!stays) experiment.artifact_location.clear();
    }
    const std::string name = experiment.name;
    Atomic both;
    both.commands.emplace_back(ImportRows(ImportExperiment{std::move(experiment), is_update}));
    both.commands.emplace_back(journal_.put_target(source.experiment_id, target));
    TUNE_TRY_VOID(store_.execute(std::move(both)));
    if (target != source.experiment_id || name != source.name)
        report_.mapped.push_back({source.experiment_id, target, source.name, name});
    expected_.push_back({Journal::Kind::kExperiment, std::to_string(target), {}});
    return {};
}

// --- artifacts -----------------------------------------------------------------------------------

/// The URI that the run or model gets.
Result<std::string> Importer::move_files(const ArtifactOwner& owner, const std::string& folder) {
    const std::string uri = kArtifactScheme + folder;
    if (options_.artifacts == ArtifactMode::kNone) return owner.uri;
    TUNE_TRY(files, source_.list_files(owner));
    if (files.place == SourceFiles::Place::kElsewhere) return owner.uri;
    if (files.place == SourceFiles::Place::kOutside) {
        report_.files_left_out.add("artifacts of " + shown(owner.id) + " lie in '" +
                                   shown(owner.uri) +
                                   "', outside of the folders that may be read; allow one with "
                                   "--artifact-root DIR");
        return owner.uri;
    }
    TUNE_TRY(moved, mover_.move(owner, files, folder));
    report_.files += moved.files;
    report_.files_new += moved.files_new;
    report_.bytes += moved.bytes;
    for (const std::string& path : moved.left_out)
        report_.files_left_out.add(shown(path) + " of " + shown(owner.id) +
                                   ": a link, a special file, or a name that is not allowed");
    progress_.files = report_.files;
    progress_.bytes = report_.bytes;
    return uri;
}

// --- runs ----------------------------------------------------------------------------------------

void Importer::count(const Run& run) {
    ++report_.read.runs;
    report_.read.params += static_cast<std::int64_t>(run.params.size());
    report_.read.tags += static_cast<std::int64_t>(run.tags.size());
    report_.read.inputs += static_cast<std::int64_t>(run.dataset_inputs.size());
    report_.read.model_links +=
        static_cast<std::int64_t>(run.model_inputs.size() + run.model_outputs.size());
}

Result<void> Importer::import_runs(ExperimentId experiment) {
    TUNE_TRY(ids, source_.list_runs(experiment));
    for (const std::string& id : ids) {
        if (is_cancelled()) return cancelled();
        TUNE_TRY_VOID(settle(import_run(experiment, id), "run '" + shown(id) + "'"));
        ++progress_.runs_done;
        report_progress();
    }
    return {};
}

/// The points of the run that was read last, as the store will hold them.
Result<void> Importer::visit_points(RunDigest* digest, const Source::VisitPoints& visit) {
    std::vector<Point> clamped;
    return source_.for_each_series(
        [&](std::string_view key, std::span<const Point> points) -> Result<void> {
            if (is_cancelled()) return cancelled();
            if (key.empty()) return Error{Code::kDataLoss, "it has a metric without a name"};
            clamped.assign(points.begin(), points.end());
            for (Point& point : clamped) point.value = clamp_metric_value(point.value);
            if (digest != nullptr) digest->add(key, clamped);
            return visit(key, clamped);
        });
}

/// For a run that is in the store but not by this import: the same run, perhaps from a copy of the
/// source?
Result<bool> Importer::is_same_in_store(const SourceRun& run, std::string& digest,
                                        std::int64_t& points) {
    RunDigest theirs;
    TUNE_TRY_VOID(visit_points(&theirs, [](auto, auto) { return Result<void>(); }));
    digest = theirs.finish(run);
    points = static_cast<std::int64_t>(theirs.point_count());
    TUNE_TRY(ours, read_stored_run(store_, run.run.info.run_id));
    return ours && ours->digest == digest;
}

Result<void> Importer::import_run(ExperimentId experiment, const std::string& run_id) {
    TUNE_TRY_VOID(validate_run_id(run_id));
    TUNE_TRY(run, source_.read_run(experiment, run_id));
    const ExperimentId target = *journal_.target_of(experiment);
    const JournalEntry* entry = journal_.find(Journal::Kind::kRun, run_id);
    const std::string stamp = stamp_of(run);
    const std::string old_uri = run.run.info.artifact_uri;
    const bool is_known = entry != nullptr;
    if (!is_known && store_.get_run_info(run_id)) {
        std::string digest;
        std::int64_t points = 0;
        TUNE_TRY(is_same, is_same_in_store(run, digest, points));
        if (!is_same)
            return Error{Code::kResourceAlreadyExists,
                         "a different run of this id is in the store already; it is left as it is"};
        TUNE_TRY_VOID(store_.execute(
            journal_.put(Journal::Kind::kRun, run_id, {true, digest, stamp, points})));
        entry = journal_.find(Journal::Kind::kRun, run_id);
    }
    const std::string folder = std::to_string(target) + "/" + run_id + "/artifacts";
    TUNE_TRY(uri, move_files({true, run_id, old_uri}, folder));
    uris_.add(old_uri, uri);
    run.run.info.experiment_id = target;
    run.run.info.artifact_uri = uri;
    if (entry != nullptr && entry->is_done && entry->stamp == stamp) {
        ++report_.runs_unchanged;
        report_.read.points += entry->points;
        progress_.points += entry->points;
    } else {
        TUNE_TRY_VOID(write_run(run, stamp, is_known));
        entry = journal_.find(Journal::Kind::kRun, run_id);
    }
    count(run.run);
    expected_.push_back({Journal::Kind::kRun, run_id, entry->digest, experiment});
    return {};
}

Result<void> Importer::write_run(SourceRun& run, const std::string& stamp, bool is_update) {
    const std::string run_id = run.run.info.run_id;
    RunDigest digest;
    ImportMetrics batch{run_id, {}};
    std::size_t batch_points = 0;
    bool is_begun = false;
    const auto begin = [&]() -> Atomic {
        is_begun = true;
        Atomic first;
        first.commands.emplace_back(ImportRows(ImportRun{run.run, is_update}));
        first.commands.emplace_back(journal_.put(Journal::Kind::kRun, run_id, {}));
        return first;
    };
    const auto take = [&](std::string_view key, std::span<const Point> points) -> Result<void> {
        if (batch.series.empty() || batch.series.back().key != key)
            batch.series.push_back({std::string(key), {}});
        auto& own = batch.series.back().points;
        own.insert(own.end(), points.begin(), points.end());
        batch_points += points.size();
        if (batch_points < kCommandPoints) return {};
        if (!is_begun) TUNE_TRY_VOID(feed_.submit(begin()));
        progress_.points += static_cast<std::int64_t>(batch_points);
        TUNE_TRY_VOID(feed_.submit(ImportRows(std::exchange(batch, {run_id, {}})),
                                   std::exchange(batch_points, 0)));
        report_progress();
        return {};
    };
    TUNE_TRY_VOID(visit_points(&digest, take));
    progress_.points += static_cast<std::int64_t>(batch_points);
    report_.read.points += static_cast<std::int64_t>(digest.point_count());
    Atomic last = is_begun ? Atomic{} : begin();
    if (batch_points > 0) last.commands.emplace_back(ImportRows(std::move(batch)));
    last.commands.emplace_back(
        ImportRows(FinishImportedRun{run_id, run.run.info.lifecycle_stage, run.deleted_time_ms}));
    last.commands.emplace_back(journal_.put(
        Journal::Kind::kRun, run_id,
        {true, digest.finish(run), stamp, static_cast<std::int64_t>(digest.point_count())}));
    return feed_.submit(std::move(last), batch_points);
}

// --- logged models -------------------------------------------------------------------------------

Result<void> Importer::import_models(ExperimentId experiment) {
    TUNE_TRY(ids, source_.list_models(experiment));
    for (const std::string& id : ids) {
        if (is_cancelled()) return cancelled();
        TUNE_TRY_VOID(settle(import_model(experiment, id), "logged model '" + shown(id) + "'"));
        report_progress();
    }
    return {};
}

Result<void> Importer::import_model(ExperimentId experiment, const std::string& model_id) {
    TUNE_TRY_VOID(validate_run_id(model_id));
    TUNE_TRY(source, source_.read_model(experiment, model_id));
    LoggedModel& model = source.model;
    for (Metric& metric : model.metrics) metric.value = clamp_metric_value(metric.value);
    const std::string digest = digest_of(source);
    const JournalEntry* entry = journal_.find(Journal::Kind::kModel, model_id);
    if (entry == nullptr) {
        TUNE_TRY(known, read_stored_model_digest(store_, model_id));
        if (known && *known != digest)
            return Error{Code::kResourceAlreadyExists,
                         "a different model of this id is in the store already; it is left as it "
                         "is"};
    }
    const ExperimentId target = *journal_.target_of(experiment);
    const std::string folder = std::to_string(target) + "/models/" + model_id + "/artifacts";
    TUNE_TRY(uri, move_files({false, model_id, model.artifact_uri}, folder));
    uris_.add(model.artifact_uri, uri);
    model.experiment_id = target;
    model.artifact_uri = uri;
    if (entry == nullptr || entry->digest != digest) {
        Atomic both;
        both.commands.emplace_back(ImportRows(ImportLoggedModel{model, source.life, true}));
        both.commands.emplace_back(
            journal_.put(Journal::Kind::kModel, model_id, {true, digest, {}}));
        TUNE_TRY_VOID(feed_.submit(std::move(both)));
    }
    ++report_.read.logged_models;
    expected_.push_back({Journal::Kind::kModel, model_id, digest, experiment});
    return {};
}

// --- the registry --------------------------------------------------------------------------------

Result<void> Importer::import_registry() {
    TUNE_TRY(names, source_.list_registered_models());
    for (const std::string& name : names) {
        if (is_cancelled()) return cancelled();
        TUNE_TRY_VOID(settle(import_registered(name), "registered model '" + shown(name) + "'"));
    }
    return {};
}

Result<void> Importer::import_registered(const std::string& name) {
    TUNE_TRY(source, source_.read_registered_model(name));
    const std::string clean_name = source.model.name;
    for (ModelVersion& version : source.versions) {
        version.source = uris_.translate(version.source);
        version.storage_location = uris_.translate(version.storage_location);
    }
    const std::string digest = digest_of(source);
    const JournalEntry* entry = journal_.find(Journal::Kind::kRegistered, name);
    if (entry == nullptr) {
        TUNE_TRY(known, read_stored_registered(store_, clean_name));
        if (known && known->digest != digest)
            return Error{Code::kResourceAlreadyExists,
                         "a different one of this name is in the store already; it is left as it "
                         "is"};
    }
    const auto versions = static_cast<std::int64_t>(source.versions.size());
    if (entry == nullptr || entry->digest != digest) {
        Atomic both;
        both.commands.emplace_back(ImportRows(
            ImportRegisteredModel{std::move(source.model), std::move(source.versions), true}));
        both.commands.emplace_back(
            journal_.put(Journal::Kind::kRegistered, name, {true, digest, {}}));
        TUNE_TRY_VOID(store_.execute(std::move(both)));
    }
    ++report_.read.registered_models;
    report_.read.model_versions += versions;
    expected_.push_back({Journal::Kind::kRegistered, clean_name, digest});
    return {};
}

// --- together ------------------------------------------------------------------------------------

Result<TransferReport> Importer::run() {
    TUNE_TRY(contents, source_.read_contents());
    report_.left_behind = std::move(contents.left_behind);
    report_.notes = std::move(contents.notes);
    progress_.runs_total = contents.run_count;
    report_progress();
    // Of several with one name the active one keeps it.
    std::stable_partition(contents.experiments.begin(), contents.experiments.end(),
                          [](const Experiment& experiment) {
                              return experiment.lifecycle_stage == LifecycleStage::kActive;
                          });
    for (const Experiment& experiment : contents.experiments)
        TUNE_TRY_VOID(settle_experiment(experiment));
    for (const Experiment& experiment : contents.experiments) {
        TUNE_TRY_VOID(import_models(experiment.experiment_id));
        TUNE_TRY_VOID(import_runs(experiment.experiment_id));
    }
    TUNE_TRY_VOID(import_registry());
    TUNE_TRY_VOID(feed_.drain());
    const auto on_verified = [this](std::int64_t runs_done) {
        progress_.phase = TransferProgress::Phase::kVerifying;
        progress_.runs_done = runs_done;
        report_progress();
        return !is_cancelled();
    };
    report_.texts_changed = source_.changed_texts();  // before verify() reads anything again
    TUNE_TRY_VOID(verify(store_, source_, expected_, on_verified, report_));
    return std::move(report_);
}

}  // namespace

Result<TransferReport> import_all(Source& source, Store& store, const ArtifactStore& artifact_store,
                                  const ImportOptions& options) {
    TUNE_TRY(journal, Journal::load(store, source.location()));
    Importer importer(source, store, artifact_store, options, std::move(journal));
    return importer.run();
}

}  // namespace tune::tracker
