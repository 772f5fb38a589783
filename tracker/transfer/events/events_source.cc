// Ids follow from the folder's place, so that a second import finds the runs of the first and
// brings what is new in them.

#include "tracker/transfer/events/events_source.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <utility>

#include "base/crypto/digest.h"
#include "base/text/hex.h"
#include "tracker/store/commands/validation.h"
#include "tracker/tensorboard/event_file.h"
#include "tracker/transfer/events/run_events.h"
#include "tracker/transfer/source/file_tree.h"
#include "tracker/transfer/text.h"

namespace tune::tracker {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRunIdBytes = 16;
constexpr std::size_t kKeyBytesMax = 250;
/// Folders that are looked into for an event file before it is said that there is none.
constexpr int kLookedAtMax = 100'000;
constexpr std::size_t kNotesMax = 100;

std::string folder_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "" : path.substr(0, slash);
}

RunStatus status_of(tensorboard::SessionStatus status) {
    return status == tensorboard::SessionStatus::kFailure   ? RunStatus::kFailed
           : status == tensorboard::SessionStatus::kRunning ? RunStatus::kRunning
                                                            : RunStatus::kFinished;
}

bool is_key(const std::string& key) {
    Metric metric;
    metric.key = key;
    return validate_metric(metric, "").has_value();
}

class EventsSource final : public Source {
public:
    explicit EventsSource(FileTree tree) : tree_(std::move(tree)) {}

    std::string location() const override { return tree_.root().string(); }
    std::int64_t changed_texts() const override { return changed_texts_; }
    Result<SourceContents> read_contents() override;
    Result<std::vector<std::string>> list_runs(ExperimentId experiment) override;
    Result<SourceRun> read_run(ExperimentId experiment, const std::string& run_id) override;
    Result<void> for_each_series(const VisitPoints& visit) override;

    // A folder of events has none of the rest.
    Result<std::vector<std::string>> list_models(ExperimentId) override { return none(); }
    Result<SourceModel> read_model(ExperimentId, const std::string&) override { return absent(); }
    Result<std::vector<std::string>> list_registered_models() override { return none(); }
    Result<SourceRegisteredModel> read_registered_model(const std::string&) override {
        return absent();
    }
    Result<SourceFiles> list_files(const ArtifactOwner&) override { return SourceFiles{}; }
    Result<void> read_file(const ArtifactOwner&, const SourceFile&, const Sink&) override {
        return absent();
    }
    Result<UniqueFd> open_file(const ArtifactOwner&, const SourceFile&) override {
        return absent();
    }

private:
    static std::vector<std::string> none() { return {}; }
    static Error absent() {
        return {Code::kResourceDoesNotExist, "event files hold runs and nothing else"};
    }
    Result<RunEvents> read_events(const std::vector<std::string>& files, bool keeps) const;
    [[nodiscard]] Sha256Bytes digest_of_place(const std::string& folder) const {
        return sha256(tree_.root().string() + '\n' + folder);
    }
    /// A key for each tag; two tags never share one.
    std::map<std::string, std::string> keys_of(const std::vector<std::string>& tags);

    FileTree tree_;
    struct RunFolder {
        std::string folder;
        std::vector<std::string> files = {};
    };
    std::map<std::string, RunFolder> runs_;             // by id
    std::vector<std::string> order_;                    // ids by folder
    std::map<std::string, std::vector<Point>> series_;  // of the last read_run, by key
    std::int64_t changed_texts_ = 0;
};

Result<RunEvents> EventsSource::read_events(const std::vector<std::string>& files,
                                            bool keeps) const {
    RunEvents events(keeps);
    for (const std::string& path : files) {
        TUNE_TRY(file, tree_.open_file(path));
        TUNE_TRY_VOID(events.add_file(std::move(file), path));
    }
    return events;
}

Result<SourceContents> EventsSource::read_contents() {
    SourceContents contents;
    std::map<std::string, std::vector<std::string>> folders;
    TUNE_TRY(paths, tree_.files_in_tree("."));
    for (const std::string& path : paths)
        if (tensorboard::is_event_file_name(fs::path(path).filename().string()))
            folders[folder_of(path)].push_back(path);
    Experiment experiment;
    const Sha256Bytes place = digest_of_place("");
    std::uint64_t number = 0;
    std::memcpy(&number, place.data() + kRunIdBytes, sizeof number);
    experiment.experiment_id =
        static_cast<ExperimentId>(number % 900'000'000'000'000'000) + 100'000'000'000'000'000;
    experiment.name = clean_text(tree_.root().filename().string(), changed_texts_);
    std::map<std::string, std::int64_t> left_out;
    std::size_t notes = 0;
    for (auto& [folder, files] : folders) {
        // Once for what is told now; runs are read again one by one.
        TUNE_TRY(events, read_events(files, false));
        for (const auto& [what, count] : events.left_out()) left_out[what] += count;
        for (const std::string& note : events.notes())
            if (++notes <= kNotesMax) contents.notes.push_back(note);
        const std::int64_t first = events.first_ms().value_or(0);
        if (experiment.creation_time_ms == 0 || first < experiment.creation_time_ms)
            experiment.creation_time_ms = first;
        experiment.last_update_time_ms =
            std::max(experiment.last_update_time_ms, events.last_ms().value_or(0));
        const Sha256Bytes digest = digest_of_place(folder);
        const std::string id = hex_encode(std::span(digest).first(kRunIdBytes));
        order_.push_back(id);
        runs_[id] = {folder, std::move(files)};
    }
    if (notes > kNotesMax)
        contents.notes.push_back(std::to_string(notes - kNotesMax) + " more such files");
    for (const auto& [what, count] : left_out)
        contents.left_behind.push_back({what + " of TensorBoard", count});
    if (tree_.left_out_count() > 0)
        contents.left_behind.push_back(
            {"links and special files, which are not followed", tree_.left_out_count()});
    contents.run_count = static_cast<std::int64_t>(order_.size());
    contents.experiments.push_back(std::move(experiment));
    return contents;
}

Result<std::vector<std::string>> EventsSource::list_runs(ExperimentId) {
    return order_;
}

std::map<std::string, std::string> EventsSource::keys_of(const std::vector<std::string>& tags) {
    std::map<std::string, std::string> keys;
    std::map<std::string, int> taken;
    // A tag that is a key already keeps it.
    for (const std::string& tag : tags)
        if (is_key(tag)) taken[keys[tag] = tag] = 1;
    for (const std::string& tag : tags) {
        if (keys.count(tag) != 0) continue;
        std::string key = event_key(clean_text(tag, changed_texts_));
        if (key.empty()) key = "unnamed";
        std::string free = key;
        for (int i = 2; taken.count(free) != 0; ++i)
            free = key.substr(0, kKeyBytesMax - 12) + "_" + std::to_string(i);
        taken[free] = 1;
        keys[tag] = std::move(free);
    }
    return keys;
}

Result<SourceRun> EventsSource::read_run(ExperimentId experiment, const std::string& run_id) {
    const RunFolder& own = runs_.at(run_id);
    TUNE_TRY(events, read_events(own.files, true));
    SourceRun source;
    Run& run = source.run;
    run.info.run_id = run_id;
    run.info.experiment_id = experiment;
    run.info.run_name = clean_text(
        own.folder.empty() ? tree_.root().filename().string() : own.folder, changed_texts_);
    run.info.status = status_of(events.status());
    run.info.start_time_ms = events.first_ms().value_or(0);
    if (run.info.status != RunStatus::kRunning) run.info.end_time_ms = events.last_ms();
    run.tags.push_back({"mlflow.runName", run.info.run_name});
    std::vector<std::string> names;
    for (const auto& [name, text] : events.params()) names.push_back(name);
    const auto param_keys = keys_of(names);
    for (const auto& [name, text] : events.params())
        run.params.push_back({param_keys.at(name), clean_text(text, changed_texts_)});
    std::sort(run.params.begin(), run.params.end(),
              [](const Param& a, const Param& b) { return a.key < b.key; });
    names.clear();
    for (const auto& [tag, points] : events.series()) names.push_back(tag);
    const auto keys = keys_of(names);
    series_.clear();
    for (auto& [tag, points] : events.series()) {
        keep_each_point_once(points);
        if (!points.empty()) series_[keys.at(tag)] = std::move(points);
    }
    for (const std::string& file : own.files)
        source.history_stamp += file + " " + tree_.stamp(file) + "\n";
    return source;
}

Result<void> EventsSource::for_each_series(const VisitPoints& visit) {
    for (const auto& [key, points] : series_) TUNE_TRY_VOID(visit(key, points));
    return {};
}

}  // namespace

bool is_event_folder(const fs::path& folder) {
    std::error_code error;
    if (fs::is_directory(folder / "mlruns", error)) return false;
    // Artifacts of MLflow's runs may be event files.
    for (const auto& entry : fs::directory_iterator(folder, error))
        if (fs::exists(entry.path() / "meta.yaml", error)) return false;
    int looked_at = 0;
    fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied,
                                        error);
    for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
        if (++looked_at > kLookedAtMax) return false;
        if (tensorboard::is_event_file_name(at->path().filename().string())) return true;
    }
    return false;
}

std::string event_key(std::string_view tag) {
    std::string key;
    for (const char c : tag) {
        const bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                              (c >= 'A' && c <= 'Z') ||
                              std::string_view("_-. :/").find(c) != std::string_view::npos ||
                              static_cast<unsigned char>(c) >= 0x80;
        key.push_back(is_plain ? c : '_');
    }
    if (is_key(key)) return key;
    std::string plain;
    // Not a path: no empty parts, none that leads up, and only letters that everybody knows.
    for (std::size_t begin = 0; begin <= key.size();) {
        const std::size_t end = std::min(key.find('/', begin), key.size());
        std::string part = key.substr(begin, end - begin);
        for (char& c : part)
            if (static_cast<unsigned char>(c) >= 0x80) c = '_';
        if (part == "." || part == "..") part.assign(part.size(), '_');
        if (!part.empty()) plain += (plain.empty() ? "" : "/") + part;
        begin = end + 1;
    }
    plain.resize(std::min(plain.size(), kKeyBytesMax));
    while (plain.ends_with('/')) plain.pop_back();
    return is_key(plain) ? plain : "";
}

Result<std::unique_ptr<Source>> open_events(const fs::path& folder) {
    std::error_code ignored;
    const fs::path place = fs::canonical(folder, ignored);
    TUNE_TRY(tree, FileTree::open(place.empty() ? folder : place));
    return std::unique_ptr<Source>(std::make_unique<EventsSource>(std::move(tree)));
}

}  // namespace tune::tracker
