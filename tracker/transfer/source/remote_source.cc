// Everything comes in pages through searches that any server of MLflow has; a route that an older
// server lacks means that it has none of these records. Histories come by get-history, whose pages
// are complete, not by the sampled bulk route.

#include "tracker/transfer/source/remote_source.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/text/percent.h"
#include "tracker/client/client.h"
#include "tracker/client/mlflow_environment.h"
#include "tracker/transfer/source/remote_json.h"
#include "tracker/transfer/text.h"

namespace tune::tracker {
namespace {

constexpr const char* kApi = "/api/2.0/mlflow/";
constexpr const char* kProxy = "/api/2.0/mlflow-artifacts/artifacts";
constexpr const char* kProxyScheme = "mlflow-artifacts:/";
/// Whole runs in one answer: 400 metrics each make 8 MB.
constexpr int kRunsPage = 200;
constexpr int kHistoryPage = 25'000;
constexpr int kModelsPage = 50;
constexpr int kRegistryPage = 1000;
constexpr int kExperimentsPage = 1000;
constexpr int kFolderDepthMax = 64;

class RemoteSource final : public Source {
public:
    RemoteSource(std::unique_ptr<Client> client, std::string url)
        : client_(std::move(client)), url_(std::move(url)) {}

    std::string location() const override { return url_; }
    std::int64_t changed_texts() const override { return 0; }  // JSON is UTF-8 or refused
    Result<SourceContents> read_contents() override;
    Result<std::vector<std::string>> list_runs(ExperimentId experiment) override;
    Result<SourceRun> read_run(ExperimentId experiment, const std::string& run_id) override;
    Result<void> for_each_series(const VisitPoints& visit) override;
    Result<std::vector<std::string>> list_models(ExperimentId experiment) override;
    Result<SourceModel> read_model(ExperimentId experiment, const std::string& model_id) override;
    Result<std::vector<std::string>> list_registered_models() override;
    Result<SourceRegisteredModel> read_registered_model(const std::string& name) override;
    Result<SourceFiles> list_files(const ArtifactOwner& owner) override;
    Result<void> read_file(const ArtifactOwner& owner, const SourceFile& file,
                           const Sink& sink) override;
    Result<UniqueFd> open_file(const ArtifactOwner&, const SourceFile&) override {
        return Error{Code::kNotImplemented, "the files of a server cannot be linked"};
    }

private:
    using VisitItem = std::function<Result<void>(const Json& item)>;
    /// Pages through a search; `items`: the answer's list.
    Result<void> search(const std::string& route, Json request, const char* items,
                        const VisitItem& visit);
    /// The same for the searches of the registry, which are GETs.
    Result<void> search_registry(const std::string& route, const std::string& filter,
                                 const char* items, const VisitItem& visit);
    Result<std::vector<Point>> read_history(const std::string& key);
    Result<void> list_folder(const ArtifactOwner& owner, const std::string& folder, int depth,
                             SourceFiles& files);
    [[nodiscard]] static std::string list_path(const ArtifactOwner& owner,
                                               const std::string& folder);
    [[nodiscard]] static std::string file_path(const ArtifactOwner& owner, const std::string& path);

    std::unique_ptr<Client> client_;
    std::string url_;
    std::string run_id_;                                       // of the last read_run
    std::vector<std::string> metrics_;                         // of the last read_run
    std::map<std::string, SourceRegisteredModel> registered_;  // without versions, by name
};

Result<void> RemoteSource::search(const std::string& route, Json request, const char* items,
                                  const VisitItem& visit) {
    for (;;) {
        TUNE_TRY(answer, client_->post(kApi + route, request));
        const auto found = answer.find(items);
        if (found != answer.end() && found->is_array())
            for (const Json& item : *found) TUNE_TRY_VOID(visit(item));
        const std::string next = json_text(answer, "next_page_token");
        if (next.empty()) return {};
        if (request.value("page_token", "") == next)
            return Error{Code::kDataLoss, "the server gives the same page again", route};
        request["page_token"] = next;
    }
}

Result<SourceContents> RemoteSource::read_contents() {
    SourceContents contents;
    const auto take = [&](const Json& item) -> Result<void> {
        TUNE_TRY(experiment, experiment_of(item));
        contents.experiments.push_back(std::move(experiment));
        return {};
    };
    TUNE_TRY_VOID(search("experiments/search",
                         {{"max_results", kExperimentsPage}, {"view_type", "ALL"}}, "experiments",
                         take));
    contents.notes.emplace_back(
        "a server does not report when a run was deleted, nor deleted logged models; traces are "
        "not moved");
    for (const Experiment& experiment : contents.experiments) {
        TUNE_TRY(runs, list_runs(experiment.experiment_id));
        contents.run_count += static_cast<std::int64_t>(runs.size());
    }
    return contents;
}

// --- runs ----------------------------------------------------------------------------------------

Result<std::vector<std::string>> RemoteSource::list_runs(ExperimentId experiment) {
    std::vector<std::string> ids;
    const auto take = [&](const Json& item) -> Result<void> {
        ids.push_back(json_text(json_object(item, "info"), "run_id"));
        return {};
    };
    TUNE_TRY_VOID(search("runs/search",
                         {{"experiment_ids", {std::to_string(experiment)}},
                          {"run_view_type", "ALL"},
                          {"max_results", kRunsPage}},
                         "runs", take));
    return ids;
}

Result<SourceRun> RemoteSource::read_run(ExperimentId experiment, const std::string& run_id) {
    TUNE_TRY(answer, client_->get(kApi + ("runs/get?run_id=" + percent_encode(run_id, false))));
    const Json& json = json_object(answer, "run");
    SourceRun source;
    TUNE_TRY(run, run_of(json));
    source.run = std::move(run);
    source.run.info.experiment_id = experiment;
    run_id_ = run_id;
    metrics_.clear();
    for (const Json& metric : json_list(json_object(json, "data"), "metrics")) {
        metrics_.push_back(json_text(metric, "key"));
        source.history_stamp += to_text(metric) + "\n";
    }
    return source;
}

Result<std::vector<Point>> RemoteSource::read_history(const std::string& key) {
    std::vector<Point> points;
    const std::string base = kApi +
                             ("metrics/get-history?run_id=" + percent_encode(run_id_, false)) +
                             "&metric_key=" + percent_encode(key, false) +
                             "&max_results=" + std::to_string(kHistoryPage);
    std::string token;
    for (;;) {
        TUNE_TRY(answer, client_->get(token.empty()
                                          ? base
                                          : base + "&page_token=" + percent_encode(token, false)));
        for (const Json& metric : json_list(answer, "metrics")) {
            TUNE_TRY(value, metric_value(metric));
            points.push_back({json_integer(metric, "timestamp").value_or(0),
                              json_integer(metric, "step").value_or(0), value});
        }
        std::string next = json_text(answer, "next_page_token");
        if (next.empty() || next == token) break;
        if (points.size() > kSourceSeriesPointsMax)
            return Error{Code::kDataLoss, "metric '" + shown(key) + "' has more than " +
                                              std::to_string(kSourceSeriesPointsMax) + " points"};
        token = std::move(next);
    }
    keep_each_point_once(points);
    return points;
}

Result<void> RemoteSource::for_each_series(const VisitPoints& visit) {
    for (const std::string& key : metrics_) {
        TUNE_TRY(points, read_history(key));
        TUNE_TRY_VOID(visit(key, points));
    }
    return {};
}

// --- logged models -------------------------------------------------------------------------------

Result<std::vector<std::string>> RemoteSource::list_models(ExperimentId experiment) {
    std::vector<std::string> ids;
    const auto take = [&](const Json& item) -> Result<void> {
        ids.push_back(json_text(json_object(item, "info"), "model_id"));
        return {};
    };
    Result<void> done =
        search("logged-models/search",
               {{"experiment_ids", {std::to_string(experiment)}}, {"max_results", kModelsPage}},
               "models", take);
    // Servers before 3.0 have no logged models.
    if (!done && done.error().code == Code::kEndpointNotFound) return ids;
    if (!done) return std::move(done).error();
    return ids;
}

Result<SourceModel> RemoteSource::read_model(ExperimentId experiment, const std::string& model_id) {
    TUNE_TRY(answer, client_->get(kApi + ("logged-models/" + percent_encode(model_id, false))));
    TUNE_TRY(model, logged_model_of(json_object(answer, "model")));
    model.experiment_id = experiment;
    return SourceModel{std::move(model), LifecycleStage::kActive};
}

// --- the registry --------------------------------------------------------------------------------

/// Searches leave prompts out unless they are asked for.
constexpr const char* kPromptsOnly = "tags.`mlflow.prompt.is_prompt` = 'true'";

Result<void> RemoteSource::search_registry(const std::string& route, const std::string& filter,
                                           const char* items, const VisitItem& visit) {
    const std::string base = kApi + route + "?max_results=" + std::to_string(kRegistryPage) +
                             (filter.empty() ? "" : "&filter=" + percent_encode(filter, false));
    std::string token;
    for (;;) {
        TUNE_TRY(answer, client_->get(token.empty()
                                          ? base
                                          : base + "&page_token=" + percent_encode(token, false)));
        for (const Json& item : json_list(answer, items)) TUNE_TRY_VOID(visit(item));
        std::string next = json_text(answer, "next_page_token");
        if (next.empty() || next == token) return {};
        token = std::move(next);
    }
}

Result<std::vector<std::string>> RemoteSource::list_registered_models() {
    registered_.clear();
    const auto take = [&](const Json& item) -> Result<void> {
        TUNE_TRY(model, registered_model_of(item));
        std::string name = model.name;
        registered_[std::move(name)] = {std::move(model), {}};
        return {};
    };
    std::vector<std::string> names;
    for (const char* filter : {"", kPromptsOnly}) {
        Result<void> done =
            search_registry("registered-models/search", filter, "registered_models", take);
        if (!done && done.error().code == Code::kEndpointNotFound) return names;
        // Older servers do not know of prompts.
        if (!done && filter[0] == '\0') return std::move(done).error();
    }
    for (const auto& [name, model] : registered_) names.push_back(name);
    return names;
}

Result<SourceRegisteredModel> RemoteSource::read_registered_model(const std::string& name) {
    SourceRegisteredModel source = registered_.at(name);
    const char quote = name.find('\'') == std::string::npos ? '\'' : '"';
    std::string filter = std::string("name = ") + quote + name + quote;
    if (is_prompt(source.model.tags)) filter += std::string(" AND ") + kPromptsOnly;
    const auto take = [&](const Json& item) -> Result<void> {
        TUNE_TRY(version, model_version_of(item));
        if (version.name != name) return {};
        TUNE_TRY(answer, client_->get(kApi +
                                      ("model-versions/get-download-uri?name=" +
                                       percent_encode(name, false)) +
                                      "&version=" + std::to_string(version.version)));
        version.storage_location = json_text(answer, "artifact_uri");
        source.versions.push_back(std::move(version));
        return {};
    };
    TUNE_TRY_VOID(search_registry("model-versions/search", filter, "model_versions", take));
    return source;
}

// --- artifacts -----------------------------------------------------------------------------------

bool is_proxied(const ArtifactOwner& owner) {
    return owner.uri.starts_with(kProxyScheme);
}

/// "1/<run>/artifacts" of "mlflow-artifacts:/1/..." and of "mlflow-artifacts://host/1/...".
std::string proxied_path(const std::string& uri) {
    std::string path = uri.substr(std::string_view(kProxyScheme).size());
    if (path.starts_with('/')) path = path.substr(std::min(path.find('/', 1), path.size()));
    while (path.starts_with('/')) path.erase(0, 1);
    return path;
}

std::string RemoteSource::list_path(const ArtifactOwner& owner, const std::string& folder) {
    const std::string query = percent_encode(folder, false);
    if (is_proxied(owner)) {
        const std::string root = proxied_path(owner.uri);
        return kProxy +
               ("?path=" + percent_encode(folder.empty() ? root : root + "/" + folder, false));
    }
    if (owner.is_run)
        return kApi + ("artifacts/list?run_id=" + percent_encode(owner.id, false) +
                       (folder.empty() ? "" : "&path=" + query));
    return kApi + ("logged-models/" + percent_encode(owner.id, false) +
                   "/artifacts/directories?artifact_directory_path=" + query);
}

std::string RemoteSource::file_path(const ArtifactOwner& owner, const std::string& path) {
    if (is_proxied(owner))
        return std::string(kProxy) + "/" + percent_encode(proxied_path(owner.uri) + "/" + path);
    if (owner.is_run)
        return "/get-artifact?path=" + percent_encode(path, false) +
               "&run_uuid=" + percent_encode(owner.id, false);
    return "/ajax-api/2.0/mlflow/logged-models/" + percent_encode(owner.id, false) +
           "/artifacts/files?artifact_file_path=" + percent_encode(path, false);
}

Result<void> RemoteSource::list_folder(const ArtifactOwner& owner, const std::string& folder,
                                       int depth, SourceFiles& files) {
    Result<Json> answer = client_->get(list_path(owner, folder));
    if (!answer) return std::move(answer).error();
    for (const Json& file : json_list(*answer, "files")) {
        const std::string whole = json_text(file, "path");
        const std::string name = whole.substr(whole.rfind('/') + 1);
        const std::string path = folder.empty() ? name : folder + "/" + name;
        const bool is_folder = file.value("is_dir", false);
        if (name.empty() || name == "." || name == ".." || depth > kFolderDepthMax ||
            files.files.size() >= kSourceFilesMax)
            files.left_out.push_back(path);
        else if (is_folder)
            TUNE_TRY_VOID(list_folder(owner, path, depth + 1, files));
        else
            files.files.push_back(
                {path, static_cast<std::uint64_t>(json_integer(file, "file_size").value_or(0))});
    }
    return {};
}

Result<SourceFiles> RemoteSource::list_files(const ArtifactOwner& owner) {
    SourceFiles files;
    const std::size_t colon = owner.uri.find("://");
    const bool is_elsewhere =
        colon != std::string::npos && !is_proxied(owner) && !owner.uri.starts_with("file:");
    if (is_elsewhere) {
        files.place = SourceFiles::Place::kElsewhere;
        return files;
    }
    if (owner.id.empty()) return files;
    TUNE_TRY_VOID(list_folder(owner, "", 0, files));
    return files;
}

Result<void> RemoteSource::read_file(const ArtifactOwner& owner, const SourceFile& file,
                                     const Sink& sink) {
    return client_->get_file(file_path(owner, file.path), sink);
}

}  // namespace

Result<std::unique_ptr<Source>> open_remote(const std::string& url) {
    ClientOptions options;
    options.url = url;
    options.timeout_ms = 120'000;
    options.user_agent = "tune-import";
    TUNE_TRY(client, create_client(std::move(options)));
    return std::unique_ptr<Source>(std::make_unique<RemoteSource>(std::move(client), url));
}

}  // namespace tune::tracker
