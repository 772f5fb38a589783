// MLflow's file store: folders per experiment and run, a file per metric, param and tag. Paths in
// meta.yaml are those of the machine that wrote it, so artifacts are looked for by their place
// relative to the run. A line of a metric file that is not 'timestamp value step' is an error that
// names file and line: nothing is dropped without a word.

#include "tracker/transfer/source/mlruns_source.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tracker/transfer/source/file_tree.h"
#include "tracker/transfer/source/flat_yaml.h"
#include "tracker/transfer/source/local_files.h"
#include "tracker/transfer/stored_names.h"
#include "tracker/transfer/text.h"

namespace tune::tracker {
namespace {

namespace fs = std::filesystem;

/// The longest line of a metric file that MLflow writes has some 150 bytes; with a dataset's name
/// of 500 characters some 2 kB.
constexpr std::size_t kMetricLineBytesMax = 16u << 10;
constexpr const char* kTrash = ".trash";
constexpr const char* kMeta = "meta.yaml";
constexpr const char* kRegistry = "models";

bool is_number(std::string_view name) {
    return !name.empty() && name.size() <= 19 &&
           name.find_first_not_of("0123456789") == std::string_view::npos;
}

std::vector<std::string_view> fields_of(std::string_view line) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    std::vector<std::string_view> fields;
    for (;;) {
        const std::size_t space = line.find(' ');
        fields.push_back(line.substr(0, space));
        if (space == std::string_view::npos) return fields;
        line.remove_prefix(space + 1);
    }
}

LifecycleStage stage_of(const FlatYaml& meta) {
    return meta.text("lifecycle_stage") == "deleted" ? LifecycleStage::kDeleted
                                                     : LifecycleStage::kActive;
}

class MlrunsSource final : public Source {
public:
    MlrunsSource(FileTree tree, LocalFiles files)
        : tree_(std::move(tree)), files_(std::move(files)) {}

    std::string location() const override { return tree_.root().string(); }
    Result<SourceContents> read_contents() override;
    Result<std::vector<std::string>> list_runs(ExperimentId experiment) override;
    Result<SourceRun> read_run(ExperimentId experiment, const std::string& run_id) override;
    Result<void> for_each_series(const VisitPoints& visit) override;
    Result<std::vector<std::string>> list_models(ExperimentId experiment) override;
    Result<SourceModel> read_model(ExperimentId experiment, const std::string& model_id) override;

    Result<std::vector<std::string>> list_registered_models() override;
    Result<SourceRegisteredModel> read_registered_model(const std::string& name) override;
    std::int64_t changed_texts() const override { return changed_texts_; }

    Result<SourceFiles> list_files(const ArtifactOwner& owner) override {
        return files_.list(place_of(owner));
    }
    Result<void> read_file(const ArtifactOwner& owner, const SourceFile& file,
                           const Sink& sink) override {
        return files_.read(place_of(owner), file, sink);
    }
    Result<UniqueFd> open_file(const ArtifactOwner& owner, const SourceFile& file) override {
        return files_.open(place_of(owner), file);
    }

private:
    Result<void> read_experiment(const std::string& folder, SourceContents& contents);
    Result<std::vector<std::string>> run_folders(const std::string& folder);
    Result<FlatYaml> read_meta(const std::string& folder) const;
    Result<std::string> text_file(const std::string& path);
    template <class Item>
    Result<void> read_pairs(const std::string& folder, std::vector<Item>& items);
    Result<void> read_inputs(const std::string& experiment, const std::string& folder, Run& run);
    Result<void> read_dataset_input(const std::string& experiment, const FlatYaml& meta, Run& run);
    Result<void> read_outputs(const std::string& folder, Run& run);
    Result<ModelVersion> read_version(const std::string& name, const std::string& folder);
    Result<void> read_model_metrics(const std::string& folder, LoggedModel& model);
    std::string clean(std::string_view text) { return clean_text(text, changed_texts_); }
    [[nodiscard]] std::string place_of(const ArtifactOwner& owner) const;

    FileTree tree_;
    LocalFiles files_;
    std::map<ExperimentId, std::string> folders_;  // of experiments
    std::string run_folder_;                       // of the last read_run
    std::vector<std::string> metric_files_;        // of the last read_run
    std::int64_t changed_texts_ = 0;
};

/// A folder that was copied from elsewhere says where its artifacts were; they are where MLflow put
/// them in relation to the rest.
std::string MlrunsSource::place_of(const ArtifactOwner& owner) const {
    for (const auto& [id, folder] : folders_) {
        const std::string name = std::to_string(id);
        const std::string middle = owner.is_run ? "/" : "/models/";
        const std::string end = name + middle + owner.id + "/artifacts";
        if (owner.id.empty() || !("/" + owner.uri).ends_with("/" + end)) continue;
        if (owner.uri.starts_with("mlflow-artifacts:")) return owner.uri;
        return (tree_.root() / (folder + middle + owner.id + "/artifacts")).string();
    }
    return owner.uri;
}

Result<FlatYaml> MlrunsSource::read_meta(const std::string& folder) const {
    const std::string path = folder + "/" + kMeta;
    TUNE_TRY(text, tree_.read(path, kSourceTextBytesMax));
    Result<FlatYaml> meta = read_flat_yaml(text);
    if (meta) return meta;
    return Error{Code::kDataLoss, "'" + shown(path) + "': " + meta.error().message};
}

Result<std::string> MlrunsSource::text_file(const std::string& path) {
    TUNE_TRY(text, tree_.read(path, kSourceTextBytesMax));
    return clean(text);
}

template <class Item>
Result<void> MlrunsSource::read_pairs(const std::string& folder, std::vector<Item>& items) {
    TUNE_TRY(paths, tree_.files_in_tree(folder));
    for (const std::string& path : paths) {
        TUNE_TRY(value, text_file(folder + "/" + path));
        items.push_back({clean(path), std::move(value)});
    }
    return {};
}

// --- experiments ---------------------------------------------------------------------------------

Result<void> MlrunsSource::read_experiment(const std::string& folder, SourceContents& contents) {
    Result<FlatYaml> meta = read_meta(folder);
    if (!meta) {
        contents.notes.push_back("left out experiment " + shown(folder) + ": " +
                                 meta.error().message);
        return {};
    }
    Experiment experiment;
    const std::string name = fs::path(folder).filename().string();
    if (!parse_number(std::string_view(name), experiment.experiment_id)) return {};
    if (folders_.count(experiment.experiment_id) != 0) {
        contents.notes.push_back("left out experiment " + shown(folder) +
                                 ": there is another of this id");
        return {};
    }
    experiment.name = clean(meta->text("name"));
    experiment.artifact_location = clean(meta->text("artifact_location"));
    experiment.lifecycle_stage = stage_of(*meta);
    experiment.creation_time_ms = meta->integer("creation_time").value_or(0);
    experiment.last_update_time_ms = meta->integer("last_update_time").value_or(0);
    TUNE_TRY_VOID(read_pairs(folder + "/tags", experiment.tags));
    TUNE_TRY(runs, run_folders(folder));
    contents.run_count += static_cast<std::int64_t>(runs.size());
    TUNE_TRY(traces, tree_.folders_in(folder + "/traces"));
    if (!traces.empty())
        contents.left_behind.push_back(
            {"traces of experiment " + name, static_cast<std::int64_t>(traces.size())});
    folders_[experiment.experiment_id] = folder;
    contents.experiments.push_back(std::move(experiment));
    return {};
}

Result<SourceContents> MlrunsSource::read_contents() {
    SourceContents contents;
    for (const std::string& parent : {std::string("."), std::string(kTrash)}) {
        TUNE_TRY(names, tree_.folders_in(parent));
        for (const std::string& name : names)
            if (is_number(name))
                TUNE_TRY_VOID(
                    read_experiment(parent == "." ? name : parent + "/" + name, contents));
    }
    std::sort(
        contents.experiments.begin(), contents.experiments.end(),
        [](const Experiment& a, const Experiment& b) { return a.experiment_id < b.experiment_id; });
    if (contents.experiments.empty())
        return Error{Code::kInvalidParameterValue,
                     "'" + location() +
                         "' holds no experiments: name the folder mlruns of a file store of "
                         "MLflow, or the folder that holds it."};
    if (tree_.left_out_count() > 0)
        contents.left_behind.push_back(
            {"links and special files, which are not followed", tree_.left_out_count()});
    return contents;
}

// --- runs ----------------------------------------------------------------------------------------

Result<std::vector<std::string>> MlrunsSource::run_folders(const std::string& folder) {
    TUNE_TRY(names, tree_.folders_in(folder));
    std::vector<std::string> runs;
    for (std::string& name : names) {
        const bool is_reserved =
            name == "tags" || name == "datasets" || name == "traces" || name == "models";
        if (!is_reserved && tree_.has_file(folder + "/" + name + "/" + kMeta))
            runs.push_back(std::move(name));
    }
    return runs;
}

Result<std::vector<std::string>> MlrunsSource::list_runs(ExperimentId experiment) {
    return run_folders(folders_.at(experiment));
}

Result<SourceRun> MlrunsSource::read_run(ExperimentId experiment, const std::string& run_id) {
    const std::string& parent = folders_.at(experiment);
    const std::string folder = parent + "/" + run_id;
    TUNE_TRY(meta, read_meta(folder));
    SourceRun source;
    RunInfo& info = source.run.info;
    info.run_id = run_id;
    info.experiment_id = experiment;
    const std::optional<std::string> name = meta.optional_text("run_name");
    info.run_name = clean(name ? *name : meta.text("name"));
    info.user_id = clean(meta.text("user_id"));
    const std::int64_t status = meta.integer("status").value_or(1);
    const auto named = status_from_name(meta.text("status"));
    if (status < 1 || status > 5)
        return Error{Code::kDataLoss, "unknown status " + std::to_string(status)};
    info.status = named ? *named : static_cast<RunStatus>(status);
    info.start_time_ms = meta.integer("start_time").value_or(0);
    info.end_time_ms = meta.integer("end_time");
    info.artifact_uri = clean(meta.text("artifact_uri"));
    info.lifecycle_stage = stage_of(meta);
    source.deleted_time_ms = meta.integer("deleted_time");
    TUNE_TRY_VOID(read_pairs(folder + "/params", source.run.params));
    TUNE_TRY_VOID(read_pairs(folder + "/tags", source.run.tags));
    TUNE_TRY_VOID(read_inputs(parent, folder, source.run));
    TUNE_TRY_VOID(read_outputs(folder, source.run));
    run_folder_ = folder;
    TUNE_TRY(files, tree_.files_in_tree(folder + "/metrics"));
    metric_files_ = std::move(files);
    for (const std::string& file : metric_files_)
        source.history_stamp += file + "\n" + tree_.stamp(folder + "/metrics/" + file) + "\n";
    return source;
}

Result<void> MlrunsSource::read_dataset_input(const std::string& experiment, const FlatYaml& meta,
                                              Run& run) {
    const std::string id = meta.text("source_id");
    if (id.find('/') != std::string::npos || id.empty())
        return Error{Code::kDataLoss, "a dataset has the id '" + shown(id) + "'"};
    TUNE_TRY(fields, read_meta(experiment + "/datasets/" + id));
    DatasetInput input;
    input.dataset.name = clean(fields.text("name"));
    input.dataset.digest = clean(fields.text("digest"));
    input.dataset.source_type = clean(fields.text("source_type"));
    input.dataset.source = clean(fields.text("source"));
    if (const auto schema = fields.optional_text("schema")) input.dataset.schema = clean(*schema);
    if (const auto profile = fields.optional_text("profile"))
        input.dataset.profile = clean(*profile);
    const auto tags = meta.maps.find("tags");
    if (tags != meta.maps.end())
        for (const auto& [key, value] : tags->second)
            input.tags.push_back({clean(key), clean(value)});
    run.dataset_inputs.push_back(std::move(input));
    return {};
}

Result<void> MlrunsSource::read_inputs(const std::string& experiment, const std::string& folder,
                                       Run& run) {
    TUNE_TRY(names, tree_.folders_in(folder + "/inputs"));
    for (const std::string& name : names) {
        TUNE_TRY(meta, read_meta(folder + "/inputs/" + name));
        if (meta.text("source_type") == "DATASET")
            TUNE_TRY_VOID(read_dataset_input(experiment, meta, run));
        else
            run.model_inputs.push_back({clean(meta.text("source_id"))});
    }
    return {};
}

Result<void> MlrunsSource::read_outputs(const std::string& folder, Run& run) {
    TUNE_TRY(names, tree_.folders_in(folder + "/outputs"));
    for (const std::string& name : names) {
        TUNE_TRY(meta, read_meta(folder + "/outputs/" + name));
        run.model_outputs.push_back({clean(name), meta.integer("step").value_or(0)});
    }
    return {};
}

Result<void> MlrunsSource::for_each_series(const VisitPoints& visit) {
    for (const std::string& file : metric_files_) {
        const std::string path = run_folder_ + "/metrics/" + file;
        std::vector<Point> points;
        const auto take = [&](std::string_view line, std::int64_t number) -> Result<void> {
            const std::vector<std::string_view> fields = fields_of(line);
            if (fields.size() == 1 && fields[0].empty()) return {};
            Point point;
            const bool is_good = (fields.size() == 2 || fields.size() == 3 || fields.size() == 5) &&
                                 parse_number(fields[0], point.timestamp_ms) &&
                                 parse_number(fields[1], point.value) &&
                                 (fields.size() == 2 || parse_number(fields[2], point.step));
            if (!is_good)
                return Error{Code::kDataLoss, "'" + shown(path) + "', line " +
                                                  std::to_string(number) + ": '" + shown(line) +
                                                  "' is not 'timestamp value step'"};
            if (points.size() >= kSourceSeriesPointsMax)
                return Error{Code::kDataLoss, "'" + shown(path) + "' has more than " +
                                                  std::to_string(kSourceSeriesPointsMax) +
                                                  " lines"};
            points.push_back(point);
            return {};
        };
        TUNE_TRY_VOID(tree_.for_each_line(path, kMetricLineBytesMax, take));
        keep_each_point_once(points);
        TUNE_TRY_VOID(visit(clean(file), points));
    }
    return {};
}

// --- logged models -------------------------------------------------------------------------------

Result<std::vector<std::string>> MlrunsSource::list_models(ExperimentId experiment) {
    return tree_.folders_in(folders_.at(experiment) + "/models");
}

Result<SourceModel> MlrunsSource::read_model(ExperimentId experiment, const std::string& model_id) {
    const std::string folder = folders_.at(experiment) + "/models/" + model_id;
    TUNE_TRY(meta, read_meta(folder));
    SourceModel source;
    LoggedModel& model = source.model;
    model.model_id = model_id;
    model.experiment_id = experiment;
    model.name = clean(meta.text("name"));
    model.artifact_uri = clean(meta.text("artifact_location"));
    model.creation_time_ms = meta.integer("creation_timestamp").value_or(0);
    model.last_updated_time_ms = meta.integer("last_updated_timestamp").value_or(0);
    const std::int64_t status = meta.integer("status").value_or(0);
    const auto named = logged_model_status_from_name(meta.text("status"));
    if (named)
        model.status = *named;
    else if (status >= 0 && status <= 3)
        model.status = static_cast<LoggedModelStatus>(status);
    source.life = stage_of(meta);
    model.model_type = clean(meta.text("model_type"));
    model.source_run_id = clean(meta.text("source_run_id"));
    model.status_message = clean(meta.text("status_message"));
    TUNE_TRY_VOID(read_pairs(folder + "/params", model.params));
    TUNE_TRY_VOID(read_pairs(folder + "/tags", model.tags));
    TUNE_TRY_VOID(read_model_metrics(folder + "/metrics", model));
    return source;
}

/// One row a (key, time, step, run), as in every database of MLflow; of several the last wins.
Result<void> MlrunsSource::read_model_metrics(const std::string& folder, LoggedModel& model) {
    using Key = std::tuple<std::string, std::int64_t, std::int64_t, std::string>;
    std::map<Key, Metric> rows;
    TUNE_TRY(files, tree_.files_in_tree(folder));
    for (const std::string& file : files) {
        const auto take = [&](std::string_view line, std::int64_t number) -> Result<void> {
            const std::vector<std::string_view> fields = fields_of(line);
            if (fields.size() == 1 && fields[0].empty()) return {};
            Metric metric;
            metric.key = clean(file);
            const bool is_good = (fields.size() == 4 || fields.size() == 6) &&
                                 parse_number(fields[0], metric.timestamp_ms) &&
                                 parse_number(fields[1], metric.value) &&
                                 parse_number(fields[2], metric.step);
            if (!is_good)
                return Error{Code::kDataLoss, "'" + shown(folder + "/" + file) + "', line " +
                                                  std::to_string(number) +
                                                  " is not 'timestamp value step run'"};
            metric.run_id = clean(fields[3]);
            if (fields.size() == 6) {
                metric.dataset_name = clean(fields[4]);
                metric.dataset_digest = clean(fields[5]);
            }
            Key key(metric.key, metric.timestamp_ms, metric.step, metric.run_id);
            rows[std::move(key)] = std::move(metric);
            return {};
        };
        TUNE_TRY_VOID(tree_.for_each_line(folder + "/" + file, kMetricLineBytesMax, take));
    }
    for (auto& [key, metric] : rows) model.metrics.push_back(std::move(metric));
    return {};
}

// --- the registry --------------------------------------------------------------------------------

Result<std::vector<std::string>> MlrunsSource::list_registered_models() {
    TUNE_TRY(names, tree_.folders_in(kRegistry));
    std::erase_if(names, [&](const std::string& name) {
        return !tree_.has_file(std::string(kRegistry) + "/" + name + "/" + kMeta);
    });
    return names;
}

Result<SourceRegisteredModel> MlrunsSource::read_registered_model(const std::string& name) {
    const std::string folder = std::string(kRegistry) + "/" + name;
    TUNE_TRY(meta, read_meta(folder));
    SourceRegisteredModel source;
    RegisteredModel& model = source.model;
    model.name = clean(name);
    model.creation_time_ms = meta.integer("creation_timestamp").value_or(0);
    model.last_updated_time_ms = meta.integer("last_updated_timestamp").value_or(0);
    model.description = clean(meta.text("description"));
    TUNE_TRY_VOID(read_pairs(folder + "/tags", model.tags));
    std::vector<Tag> aliases;
    TUNE_TRY_VOID(read_pairs(folder + "/aliases", aliases));
    for (const Tag& alias : aliases) {
        std::int64_t version = 0;
        if (!parse_number(std::string_view(alias.value), version))
            return Error{Code::kDataLoss, "its alias '" + shown(alias.key) + "' names no version"};
        model.aliases.push_back({alias.key, version});
    }
    TUNE_TRY(folders, tree_.folders_in(folder));
    for (const std::string& version_folder : folders) {
        if (!version_folder.starts_with("version-")) continue;
        TUNE_TRY(version, read_version(model.name, folder + "/" + version_folder));
        source.versions.push_back(std::move(version));
    }
    return source;
}

Result<ModelVersion> MlrunsSource::read_version(const std::string& name,
                                                const std::string& folder) {
    TUNE_TRY(meta, read_meta(folder));
    const auto text = [&](const char* field) -> std::optional<std::string> {
        const auto found = meta.optional_text(field);
        if (!found) return std::nullopt;
        return clean(*found);
    };
    ModelVersion version;
    version.name = name;
    version.version = meta.integer("version").value_or(0);
    if (version.version < 1) return Error{Code::kDataLoss, "'" + shown(folder) + "': no version"};
    version.creation_time_ms = meta.integer("creation_timestamp").value_or(0);
    version.last_updated_time_ms = meta.integer("last_updated_timestamp").value_or(0);
    version.description = text("description");
    version.user_id = text("user_id");
    TUNE_TRY(stage, stored_stage(meta.text("current_stage")));
    version.stage = stage;
    version.source = text("source").value_or("");
    version.storage_location = text("storage_location").value_or(version.source);
    version.run_id = text("run_id");
    version.run_link = text("run_link");
    version.status = stored_version_status(meta.text("status"));
    version.status_message = text("status_message").value_or("");
    TUNE_TRY_VOID(read_pairs(folder + "/tags", version.tags));
    return version;
}

}  // namespace

Result<std::unique_ptr<Source>> open_mlruns(MlrunsOptions options) {
    std::error_code missing;
    fs::path folder = fs::absolute(options.folder).lexically_normal();
    if (fs::is_directory(folder / "mlruns", missing)) folder /= "mlruns";
    TUNE_TRY(tree, FileTree::open(folder));
    LocalFiles files(tree.root().parent_path());
    files.allow(tree.root(), false);
    for (const fs::path& root : options.artifact_roots) files.allow(root, true);
    files.allow(tree.root().parent_path() / "mlartifacts", true);
    return std::unique_ptr<Source>(
        std::make_unique<MlrunsSource>(std::move(tree), std::move(files)));
}

}  // namespace tune::tracker
