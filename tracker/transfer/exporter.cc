#include "tracker/transfer/exporter.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "tracker/artifacts/artifact_path.h"
#include "tracker/sqlite/transaction.h"
#include "tracker/store/read_transfer.h"
#include "tracker/transfer/digest.h"
#include "tracker/transfer/local_files.h"
#include "tracker/transfer/mlflow_db/mlflow_db_source.h"
#include "tracker/transfer/mlflow_db/mlflow_db_writer.h"
#include "tracker/transfer/text.h"

namespace tune::tracker {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kProxied = "mlflow-artifacts:/";

Error cancelled() {
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
    Result<void> write_runs(const Experiment& experiment);
    Result<void> write_run(const std::string& run_id);
    Result<void> write_models(const Experiment& experiment);
    Result<void> write_registry();
    Result<void> verify_runs(Source& source, ExperimentId experiment);
    void count(const Run& run, TransferCounts& counts) const;
    [[nodiscard]] std::string uri(const std::string& uri) const;
    void tell() {
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
    TUNE_TRY(experiments, list_experiments(*store_));
    for (const Experiment& experiment : experiments) {
        TUNE_TRY(ids, list_run_ids(*store_, experiment.experiment_id));
        progress_.runs_total += static_cast<std::int64_t>(ids.size());
    }
    for (Experiment& experiment : experiments) {
        experiment.artifact_location = uri(experiment.artifact_location);
        TUNE_TRY_VOID(writer_->add_experiment(experiment));
        ++report_.read.experiments;
        TUNE_TRY_VOID(write_runs(experiment));
        TUNE_TRY_VOID(write_models(experiment));
    }
    TUNE_TRY_VOID(write_registry());
    TUNE_TRY_VOID(writer_->finish());
    return snapshot.commit();
}

Result<void> Exporter::write_runs(const Experiment& experiment) {
    TUNE_TRY(ids, list_run_ids(*store_, experiment.experiment_id));
    for (const std::string& id : ids) {
        if (is_cancelled()) return cancelled();
        TUNE_TRY_VOID(write_run(id));
        ++progress_.runs_done;
        tell();
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
        TUNE_TRY(stored, find_stored_registered_model(*store_, name));
        TUNE_CHECK(stored.has_value(), "a registered model vanished from a snapshot");
        SourceRegisteredModel model{std::move(stored->model), std::move(stored->versions)};
        for (ModelVersion& version : model.versions) {
            version.source = uri(version.source);
            version.storage_location = uri(version.storage_location);
        }
        TUNE_TRY_VOID(writer_->add_registered_model(model));
        digests_["g/" + name] = digest_of(model);
        ++report_.read.registered_models;
        report_.read.model_versions += static_cast<std::int64_t>(model.versions.size());
    }
    return {};
}

Result<void> Exporter::copy_artifacts() {
    if (options_.artifacts == ArtifactMode::kNone) return {};
    StoreFiles source(options_.data / "artifacts");
    TUNE_TRY(target, ArtifactStore::open(artifacts_));
    const ArtifactMover mover(source, *target, artifacts_, options_.artifacts);
    const ArtifactOwner owner{true, "all", std::string(kProxied)};
    TUNE_TRY(files, source.list(owner.uri));
    SourceFiles one;
    for (SourceFile& file : files.files) {
        if (is_cancelled()) return cancelled();
        if (file.path.starts_with(kUploadPrefix)) continue;  // of an upload under way
        one.files.assign(1, std::move(file));
        TUNE_TRY(moved, mover.move(owner, one, ""));
        report_.files += moved.files;
        report_.files_new += moved.files_new;
        report_.bytes += moved.bytes;
        for (const std::string& path : moved.left_out) report_.files_left_out.add(shown(path));
        progress_.files = report_.files;
        progress_.bytes = report_.bytes;
        tell();
    }
    return {};
}

Result<void> Exporter::verify_runs(Source& source, ExperimentId experiment) {
    TUNE_TRY(ids, source.list_runs(experiment));
    for (const std::string& id : ids) {
        if (is_cancelled()) return cancelled();
        TUNE_TRY(run, source.read_run(experiment, id));
        RunDigest digest;
        const auto take = [&](std::string_view key, std::span<const Point> points) -> Result<void> {
            digest.add(key, points);
            return {};
        };
        TUNE_TRY_VOID(source.for_each_series(take));
        if (digest.finish(run) != digests_[id])
            report_.mismatches.add("run " + id + " reads back differently");
        count(run.run, report_.stored);
        report_.stored.points += static_cast<std::int64_t>(digest.point_count());
        ++progress_.runs_done;
        tell();
    }
    TUNE_TRY(models, source.list_models(experiment));
    for (const std::string& id : models) {
        TUNE_TRY(model, source.read_model(experiment, id));
        if (digest_of(model) != digests_["m/" + id])
            report_.mismatches.add("logged model " + id + " reads back differently");
        ++report_.stored.logged_models;
    }
    return {};
}

Result<void> Exporter::verify(const fs::path& file) {
    progress_.phase = TransferProgress::Phase::kVerifying;
    progress_.runs_done = 0;
    TUNE_TRY(source, open_mlflow_db({file}));
    TUNE_TRY(contents, source->read_contents());
    for (const Experiment& experiment : contents.experiments) {
        ++report_.stored.experiments;
        TUNE_TRY_VOID(verify_runs(*source, experiment.experiment_id));
    }
    TUNE_TRY(names, source->list_registered_models());
    for (const std::string& name : names) {
        TUNE_TRY(model, source->read_registered_model(name));
        if (digest_of(model) != digests_["g/" + name])
            report_.mismatches.add("registered model " + shown(name) + " reads back differently");
        ++report_.stored.registered_models;
        report_.stored.model_versions += static_cast<std::int64_t>(model.versions.size());
    }
    return {};
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
