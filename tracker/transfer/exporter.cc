// One read transaction covers rows and read-back, so a server may write meanwhile. The file is
// written under a temporary name, read back by the importer's own source and compared run by run;
// only then does it get its name. Names that MLflow wants unique are settled before anything is
// written.

#include "tracker/transfer/exporter.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "tracker/artifacts/artifact_path.h"
#include "tracker/sqlite/transaction.h"
#include "tracker/store/reads/read_transfer.h"
#include "tracker/transfer/difference.h"
#include "tracker/transfer/digest.h"
#include "tracker/transfer/mlflow_db/mlflow_db_source.h"
#include "tracker/transfer/mlflow_db/mlflow_db_writer.h"
#include "tracker/transfer/source/local_files.h"
#include "tracker/transfer/text.h"

namespace tune::tracker {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kProxied = "mlflow-artifacts:/";

Error export_cancelled() {
    return {Code::kCancelled, "interrupted; nothing was exported but artifacts that were copied"};
}

/// The artifact folder of a store.
class StoreFiles final : public FileSource {
public:
    explicit StoreFiles(const fs::path& root) : files_(root) { files_.allow(root, true); }
    [[nodiscard]] Result<SourceFiles> list(const std::string& uri) const {
        return files_.list(uri);
    }
    Result<void> read_file(const ArtifactOwner& owner, const SourceFile& file,
                           const Sink& sink) override {
        return files_.read(owner.uri, file, sink);
    }
    Result<UniqueFd> open_file(const ArtifactOwner& owner, const SourceFile& file) override {
        return files_.open(owner.uri, file);
    }

private:
    LocalFiles files_;
};

/// Removes the folder in which the target's store would collect uploads, if it is empty: it is no
/// part of what is exported.
class StagingRemoval {
public:
    explicit StagingRemoval(const fs::path& artifacts) : folder_(artifacts / kStagingFolder) {}
    ~StagingRemoval() {
        std::error_code ignored;
        fs::remove(folder_, ignored);
    }
    StagingRemoval(const StagingRemoval&) = delete;
    StagingRemoval& operator=(const StagingRemoval&) = delete;

private:
    const fs::path folder_;
};

/// Whether the file is of an upload under way, in whatever folder.
bool is_of_upload(const std::string& path) {
    return path.starts_with(kUploadPrefix) ||
           path.find("/" + std::string(kUploadPrefix)) != std::string::npos;
}

class Exporter {
public:
    Exporter(const ExportOptions& options, std::unique_ptr<sqlite::Connection> store,
             std::unique_ptr<MlflowDbWriter> writer, fs::path artifacts)
        : options_(options),
          store_(std::move(store)),
          writer_(std::move(writer)),
          artifacts_(std::move(artifacts)) {}

    Result<void> write();
    Result<void> copy_artifacts();
    /// Reads `file` back.
    Result<void> verify(const fs::path& file);
    TransferReport take_report() { return std::move(report_); }

private:
    void settle_names(std::vector<Experiment>& experiments);
    Result<void> write_runs(const Experiment& experiment);
    Result<void> write_run(const std::string& run_id);
    Result<void> write_models(const Experiment& experiment);
    Result<void> write_registry();
    Result<void> verify_experiment(Source& source, const Experiment& found);
    Result<void> verify_run(Source& source, ExperimentId experiment, const std::string& id);
    Result<void> verify_models(Source& source, ExperimentId experiment);
    Result<void> verify_registry(Source& source);
    /// What of a run that was read back is not as the store has it.
    Result<std::string> difference_of(const SourceRun& found, const RunDigest& points);
    Result<SourceRegisteredModel> read_registered(const std::string& name);
    void count(const Run& run, TransferCounts& counts) const;
    [[nodiscard]] std::string uri(const std::string& uri) const;
    void report_progress() {
        if (options_.on_progress) options_.on_progress(progress_);
    }
    [[nodiscard]] bool is_cancelled() const {
        return options_.is_cancelled && options_.is_cancelled();
    }

    const ExportOptions& options_;
    std::unique_ptr<sqlite::Connection> store_;
    std::unique_ptr<MlflowDbWriter> writer_;
    fs::path artifacts_;
    TransferReport report_;
    TransferProgress progress_;
    std::optional<sqlite::Transaction> snapshot_;
    std::unordered_map<ExperimentId, Experiment> experiments_;  // as they were written
    std::unordered_map<std::string, std::string> digests_;  // by run, "m/" model, "g/" registered
};

std::string Exporter::uri(const std::string& uri) const {
    if (!options_.local_uris || !uri.starts_with(kProxied)) return uri;
    return (artifacts_ / uri.substr(kProxied.size())).string();
}

void Exporter::count(const Run& run, TransferCounts& counts) const {
    ++counts.runs;
    counts.params += static_cast<std::int64_t>(run.params.size());
    counts.tags += static_cast<std::int64_t>(run.tags.size());
    counts.inputs += static_cast<std::int64_t>(run.dataset_inputs.size());
    counts.model_links +=
        static_cast<std::int64_t>(run.model_inputs.size() + run.model_outputs.size());
}

Result<void> Exporter::write() {
    TUNE_TRY(snapshot, sqlite::Transaction::begin_read(*store_));
    snapshot_.emplace(std::move(snapshot));
    TUNE_TRY(experiments, list_experiments(*store_));
    for (const Experiment& experiment : experiments) {
        TUNE_TRY(ids, list_run_ids(*store_, experiment.experiment_id));
        progress_.runs_total += static_cast<std::int64_t>(ids.size());
    }
    settle_names(experiments);
    for (Experiment& experiment : experiments) {
        experiment.artifact_location = uri(experiment.artifact_location);
        TUNE_TRY_VOID(writer_->add_experiment(experiment));
        ++report_.read.experiments;
        TUNE_TRY_VOID(write_runs(experiment));
        TUNE_TRY_VOID(write_models(experiment));
        experiments_[experiment.experiment_id] = std::move(experiment);
    }
    TUNE_TRY_VOID(write_registry());
    return writer_->finish();
}

/// MLflow has one experiment of a name, deleted ones counted; here a deleted one leaves its name to
/// others. Of several with one name the active one keeps it, else the first.
void Exporter::settle_names(std::vector<Experiment>& experiments) {
    std::unordered_set<std::string> all;
    std::unordered_set<std::string> kept;
    for (const Experiment& experiment : experiments) {
        all.insert(experiment.name);
        if (experiment.lifecycle_stage == LifecycleStage::kActive) kept.insert(experiment.name);
    }
    for (Experiment& experiment : experiments) {
        if (experiment.lifecycle_stage == LifecycleStage::kActive) continue;
        if (kept.insert(experiment.name).second) continue;
        const ExperimentId id = experiment.experiment_id;
        const std::string base = experiment.name + " (deleted " + std::to_string(id);
        std::string name = base + ")";
        for (int i = 2; !all.insert(name).second; ++i) name = base + ", " + std::to_string(i) + ")";
        report_.mapped.push_back({id, id, experiment.name, name});
        experiment.name = std::move(name);
    }
}

Result<void> Exporter::write_runs(const Experiment& experiment) {
    TUNE_TRY(ids, list_run_ids(*store_, experiment.experiment_id));
    for (const std::string& id : ids) {
        if (is_cancelled()) return export_cancelled();
        TUNE_TRY_VOID(write_run(id));
        ++progress_.runs_done;
        report_progress();
    }
    return {};
}

Result<void> Exporter::write_run(const std::string& run_id) {
    TUNE_TRY(stored, find_stored_run(*store_, run_id));
    TUNE_CHECK(stored.has_value(), "a run vanished from a snapshot");
    SourceRun run;
    run.run = std::move(stored->run);
    run.deleted_time_ms = stored->deleted_time_ms;
    run.run.info.artifact_uri = uri(run.run.info.artifact_uri);
    TUNE_TRY_VOID(writer_->add_run(run));
    RunDigest digest;
    const auto take = [&](std::string_view key, std::span<const Point> points) -> Result<void> {
        digest.add(key, points);
        progress_.points += static_cast<std::int64_t>(points.size());
        return writer_->add_points(run_id, key, points);
    };
    TUNE_TRY_VOID(for_each_stored_series(*store_, run_id, take));
    digests_[run_id] = digest.finish(run);
    count(run.run, report_.read);
    report_.read.points += static_cast<std::int64_t>(digest.point_count());
    return {};
}

Result<void> Exporter::write_models(const Experiment& experiment) {
    TUNE_TRY(ids, list_model_ids(*store_, experiment.experiment_id));
    for (const std::string& id : ids) {
        TUNE_TRY(stored, find_stored_model(*store_, id));
        TUNE_CHECK(stored.has_value(), "a model vanished from a snapshot");
        SourceModel model{std::move(stored->model), stored->life};
        model.model.artifact_uri = uri(model.model.artifact_uri);
        TUNE_TRY_VOID(writer_->add_model(model));
        digests_["m/" + id] = digest_of(model);
        ++report_.read.logged_models;
    }
    return {};
}

Result<void> Exporter::write_registry() {
    TUNE_TRY(names, list_registered_names(*store_));
    for (const std::string& name : names) {
        TUNE_TRY(model, read_registered(name));
        TUNE_TRY_VOID(writer_->add_registered_model(model));
        digests_["g/" + name] = digest_of(model);
        ++report_.read.registered_models;
        report_.read.model_versions += static_cast<std::int64_t>(model.versions.size());
    }
    return {};
}

Result<SourceRegisteredModel> Exporter::read_registered(const std::string& name) {
    TUNE_TRY(stored, find_stored_registered_model(*store_, name));
    TUNE_CHECK(stored.has_value(), "a registered model vanished from a snapshot");
    SourceRegisteredModel model{std::move(stored->model), std::move(stored->versions)};
    for (ModelVersion& version : model.versions) {
        version.source = uri(version.source);
        version.storage_location = uri(version.storage_location);
    }
    return model;
}

Result<void> Exporter::copy_artifacts() {
    if (options_.artifacts == ArtifactMode::kNone) return {};
    StoreFiles source(options_.data / "artifacts");
    const StagingRemoval staging_removal(artifacts_);
    TUNE_TRY(target, ArtifactStore::open(artifacts_));
    const ArtifactMover mover(source, *target, artifacts_, options_.artifacts);
    const ArtifactOwner owner{true, "all", std::string(kProxied)};
    TUNE_TRY(files, source.list(owner.uri));
    SourceFiles one;
    for (SourceFile& file : files.files) {
        if (is_cancelled()) return export_cancelled();
        if (is_of_upload(file.path)) continue;
        one.files.assign(1, std::move(file));
        TUNE_TRY(moved, mover.move(owner, one, ""));
        report_.files += moved.files;
        report_.files_new += moved.files_new;
        report_.bytes += moved.bytes;
        for (const std::string& path : moved.left_out) report_.files_left_out.add(shown(path));
        progress_.files = report_.files;
        progress_.bytes = report_.bytes;
        report_progress();
    }
    return {};
}

// --- reading back --------------------------------------------------------------------------------

Result<std::string> Exporter::difference_of(const SourceRun& found, const RunDigest& points) {
    TUNE_TRY(stored, find_stored_run(*store_, found.run.info.run_id));
    if (!stored) return std::string("it is not in the store");
    RunDigest kept;
    const auto take = [&](std::string_view key, std::span<const Point> more) -> Result<void> {
        kept.add(key, more);
        return {};
    };
    TUNE_TRY_VOID(for_each_stored_series(*store_, found.run.info.run_id, take));
    const SourceRun run{std::move(stored->run), stored->deleted_time_ms, {}};
    return first_difference(run, kept, found, points);
}

Result<void> Exporter::verify_run(Source& source, ExperimentId experiment, const std::string& id) {
    TUNE_TRY(run, source.read_run(experiment, id));
    RunDigest digest;
    const auto take = [&](std::string_view key, std::span<const Point> points) -> Result<void> {
        digest.add(key, points);
        return {};
    };
    TUNE_TRY_VOID(source.for_each_series(take));
    if (digest.finish(run) != digests_[id]) {
        TUNE_TRY(field, difference_of(run, digest));
        report_.mismatches.add(difference_line("run " + shown(id), field));
    }
    count(run.run, report_.stored);
    report_.stored.points += static_cast<std::int64_t>(digest.point_count());
    ++progress_.runs_done;
    report_progress();
    return {};
}

Result<void> Exporter::verify_models(Source& source, ExperimentId experiment) {
    TUNE_TRY(ids, source.list_models(experiment));
    for (const std::string& id : ids) {
        TUNE_TRY(model, source.read_model(experiment, id));
        ++report_.stored.logged_models;
        if (digest_of(model) == digests_["m/" + id]) continue;
        TUNE_TRY(stored, find_stored_model(*store_, id));
        const std::string field =
            stored ? first_difference({std::move(stored->model), stored->life}, model) : "";
        report_.mismatches.add(difference_line("logged model " + shown(id), field));
    }
    return {};
}

Result<void> Exporter::verify_experiment(Source& source, const Experiment& found) {
    const ExperimentId id = found.experiment_id;
    const std::string field = first_difference(experiments_[id], found);
    if (!field.empty())
        report_.mismatches.add(difference_line("experiment " + std::to_string(id), field));
    ++report_.stored.experiments;
    TUNE_TRY(runs, source.list_runs(id));
    for (const std::string& run : runs) {
        if (is_cancelled()) return export_cancelled();
        TUNE_TRY_VOID(verify_run(source, id, run));
    }
    return verify_models(source, id);
}

Result<void> Exporter::verify_registry(Source& source) {
    TUNE_TRY(names, source.list_registered_models());
    for (const std::string& name : names) {
        TUNE_TRY(model, source.read_registered_model(name));
        ++report_.stored.registered_models;
        report_.stored.model_versions += static_cast<std::int64_t>(model.versions.size());
        const auto written = digests_.find("g/" + name);
        if (written != digests_.end() && written->second == digest_of(model)) continue;
        std::string field;
        if (written != digests_.end()) {
            TUNE_TRY(stored, read_registered(name));
            field = first_difference(stored, model);
        }
        report_.mismatches.add(difference_line("registered model '" + shown(name) + "'", field));
    }
    return {};
}

Result<void> Exporter::verify(const fs::path& file) {
    progress_.phase = TransferProgress::Phase::kVerifying;
    progress_.runs_done = 0;
    TUNE_TRY(source, open_mlflow_db({file}));
    TUNE_TRY(contents, source->read_contents());
    for (const Experiment& experiment : contents.experiments)
        TUNE_TRY_VOID(verify_experiment(*source, experiment));
    TUNE_TRY_VOID(verify_registry(*source));
    return snapshot_->commit();
}

/// Removes the file when it goes, unless it was kept.
class TemporaryFile {
public:
    explicit TemporaryFile(fs::path path) : path_(std::move(path)) { remove(); }
    ~TemporaryFile() {
        if (!is_kept_) remove();
    }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    [[nodiscard]] const fs::path& path() const { return path_; }

    /// Under its real name, on disk.
    Result<void> keep_as(const fs::path& name) {
        if (std::rename(path_.c_str(), name.c_str()) != 0)
            return Error{Code::kInternalError,
                         "'" + name.string() + "' cannot be made (" +
                             std::error_code(errno, std::generic_category()).message() + ")"};
        is_kept_ = true;
        const UniqueFd folder(::open(name.parent_path().c_str(), O_RDONLY | O_DIRECTORY));
        if (folder) ::fsync(folder.get());
        return {};
    }

private:
    void remove() const {
        std::error_code ignored;
        fs::remove(path_, ignored);
        fs::remove(path_.string() + "-journal", ignored);
    }
    fs::path path_;
    bool is_kept_ = false;
};

}  // namespace

std::filesystem::path export_file(const std::filesystem::path& target) {
    const fs::path file = target.extension() == ".db" ? target : target / "mlflow.db";
    return fs::absolute(file).lexically_normal();
}

Result<TransferReport> export_all(const ExportOptions& options) {
    const fs::path file = export_file(options.target);
    std::error_code failed;
    if (fs::exists(fs::symlink_status(file, failed)))
        return Error{Code::kResourceAlreadyExists,
                     "'" + file.string() + "' is there already; name another one or remove it"};
    fs::create_directories(file.parent_path(), failed);
    if (failed)
        return Error{Code::kPermissionDenied, "The folder '" + file.parent_path().string() +
                                                  "' cannot be made (" + failed.message() + ")"};
    TUNE_TRY(store, open_store_for_reading(options.data));
    TemporaryFile temporary(file.parent_path() / ("." + file.filename().string() + ".exporting"));
    TUNE_TRY(writer, MlflowDbWriter::create(temporary.path()));
    Exporter exporter(options, std::move(store), std::move(writer),
                      file.parent_path() / "mlartifacts");
    TUNE_TRY_VOID(exporter.write());
    TUNE_TRY_VOID(exporter.copy_artifacts());
    TUNE_TRY_VOID(exporter.verify(temporary.path()));
    TransferReport report = exporter.take_report();
    if (!report.is_whole())
        return Error{Code::kDataLoss,
                     "the export reads back differently and was removed: " +
                         (report.mismatches.lines.empty() ? std::string("other counts")
                                                          : report.mismatches.lines.front())};
    TUNE_TRY_VOID(temporary.keep_as(file));
    return report;
}

}  // namespace tune::tracker
