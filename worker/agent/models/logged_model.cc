// The calls are those of mlflow 3.17.2's log_model: create, outputs of the run, metrics with the
// model's id, files, READY. What makes them repeatable is that the first of them looks for a model
// of this run that has our tag: whoever was killed in between left one that is PENDING, and it is
// filled again. MLmodel goes last of the files, READY after it.

#include "worker/agent/models/logged_model.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <vector>

#include "base/json.h"
#include "base/system/file.h"
#include "base/text/percent.h"
#include "worker/agent/server/artifact_folder.h"

namespace tune::worker {
namespace fs = std::filesystem;
namespace {

constexpr int kModelCallTimeout_ms = 30'000;
constexpr const char* kApi = "/api/2.0/mlflow/";
/// MLflow's default.
constexpr const char* kModelName = "model";
/// On the one model of a run that the agent logged.
constexpr const char* kOwnTag = "tune.model";
constexpr std::size_t kParamsAtOnce = 100;
constexpr std::size_t kModelFilesMax = 10'000;
constexpr std::string_view kOwnKeys[] = {"artifact_path", "model_id", "run_id"};

struct LoggedModel {
    std::string id;
    std::string location;
    bool is_ready = false;
};

Result<LoggedModel> model_of(const Json& model) {
    const Json info = model.value("info", Json::object());
    LoggedModel logged{info.value("model_id", std::string()),
                       info.value("artifact_uri", std::string()),
                       info.value("status", std::string()) == "LOGGED_MODEL_READY"};
    if (logged.id.empty()) return Error{Code::kDataLoss, "the server named no logged model"};
    return logged;
}

bool has_own_tag(const Json& model) {
    for (const Json& tag : model.value("info", Json::object()).value("tags", Json::array()))
        if (tag.value("key", std::string()) == kOwnTag) return true;
    return false;
}

/// The one that an earlier call made.
Result<std::optional<LoggedModel>> find_model(tracker::Client& client, const ModelOrder& order) {
    TUNE_TRY(answer, client.post(std::string(kApi) + "logged-models/search",
                                 {{"experiment_ids", {order.experiment_id}},
                                  {"filter", "source_run_id = '" + order.run_id + "'"}},
                                 kModelCallTimeout_ms));
    std::optional<LoggedModel> found;
    for (const Json& model : answer.value("models", Json::array())) {
        if (!has_own_tag(model)) continue;
        TUNE_TRY(logged, model_of(model));
        if (!found || logged.is_ready) found = std::move(logged);
    }
    return found;
}

Result<LoggedModel> make_model(tracker::Client& client, const ModelOrder& order, const Json& run) {
    const Json params = run.value("data", Json::object()).value("params", Json::array());
    Json first = Json::array();
    for (std::size_t i = 0; i < std::min(params.size(), kParamsAtOnce); ++i)
        first.push_back(params[i]);
    TUNE_TRY(answer, client.post(std::string(kApi) + "logged-models",
                                 {{"experiment_id", order.experiment_id},
                                  {"name", kModelName},
                                  {"source_run_id", order.run_id},
                                  {"params", std::move(first)},
                                  {"tags", {{{"key", kOwnTag}, {"value", "true"}}}}},
                                 kModelCallTimeout_ms));
    TUNE_TRY(logged, model_of(answer.value("model", Json::object())));
    for (std::size_t begin = kParamsAtOnce; begin < params.size(); begin += kParamsAtOnce) {
        Json more = Json::array();
        for (std::size_t i = begin; i < std::min(params.size(), begin + kParamsAtOnce); ++i)
            more.push_back(params[i]);
        TUNE_TRY_VOID(client.post(std::string(kApi) + "logged-models/" + logged.id + "/params",
                                  {{"model_id", logged.id}, {"params", std::move(more)}},
                                  kModelCallTimeout_ms));
    }
    return logged;
}

/// The epoch that MLmodel's metadata name, as tune-trainer writes it; nothing: any other model.
std::optional<std::int64_t> epoch_of(std::string_view mlmodel) {
    constexpr std::string_view kKey = "\nmetadata: {";
    const std::size_t at = mlmodel.find(kKey);
    if (at == std::string_view::npos) return std::nullopt;
    const std::size_t begin = at + kKey.size() - 1;
    const auto json = parse_json(mlmodel.substr(begin, mlmodel.find('\n', begin) - begin));
    if (!json || !json->contains("tune") || !(*json)["tune"].is_object()) return std::nullopt;
    const Json& epoch = (*json)["tune"].value("epoch", Json());
    return epoch.is_number_integer() ? std::optional(epoch.get<std::int64_t>()) : std::nullopt;
}

/// The value at `step` of one metric of the run; null: it has none there.
Result<Json> value_at(tracker::Client& client, const ModelOrder& order, const std::string& key,
                      std::int64_t step) {
    TUNE_TRY(answer, client.get(std::string(kApi) + "metrics/get-history?run_id=" +
                                    percent_encode(order.run_id, false) +
                                    "&metric_key=" + percent_encode(key, false),
                                kModelCallTimeout_ms));
    Json last;
    for (const Json& metric : answer.value("metrics", Json::array()))
        if (metric.value("step", std::int64_t{0}) == step) last = metric;
    return last;
}

/// The run's metrics at the model's step, or, where no step is known, its latest, become those of
/// the model.
Result<void> link_metrics(tracker::Client& client, const ModelOrder& order, const Json& run,
                          const std::string& model_id, std::optional<std::int64_t> step) {
    Json metrics = Json::array();
    for (Json metric : run.value("data", Json::object()).value("metrics", Json::array())) {
        const std::string key = metric.value("key", std::string());
        if (key.starts_with("system/")) continue;
        if (step && metric.value("step", std::int64_t{0}) != *step) {
            TUNE_TRY(found, value_at(client, order, key, *step));
            metric = std::move(found);
        }
        if (metric.is_null()) continue;
        metric["model_id"] = model_id;
        metrics.push_back(std::move(metric));
    }
    if (metrics.empty()) return {};
    TUNE_TRY_VOID(client.post(std::string(kApi) + "runs/log-batch",
                              {{"run_id", order.run_id}, {"metrics", std::move(metrics)}},
                              kModelCallTimeout_ms));
    return {};
}

/// Names below `folder` but MLmodel. Errors: kInvalidParameterValue for too many.
Result<std::vector<std::string>> model_files(const fs::path& folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::recursive_directory_iterator item(folder, error), end; !error && item != end;
         item.increment(error)) {
        if (!item->is_regular_file(error) || item->is_symlink(error)) continue;
        std::string name = item->path().lexically_relative(folder).string();
        if (name != "MLmodel") names.push_back(std::move(name));
    }
    if (error) return invalid_parameter("'" + folder.string() + "': " + error.message());
    if (names.size() > kModelFilesMax)
        return invalid_parameter("the model has more than " + std::to_string(kModelFilesMax) +
                                 " files");
    std::sort(names.begin(), names.end());
    return names;
}

Result<void> send_files(tracker::Client& client, const ModelOrder& order, const LoggedModel& model,
                        std::string_view mlmodel) {
    TUNE_TRY(root, proxied_folder(model.location, "models"));
    TUNE_TRY(text, with_ids(mlmodel, model.id, order.run_id, model.location));
    TUNE_TRY(names, model_files(order.folder));
    for (const std::string& name : names)
        TUNE_TRY_VOID(client.put_file(kArtifactsPath + percent_encode(root + "/" + name),
                                      order.folder / name, UINT64_MAX, kModelCallTimeout_ms));
    return client.put_bytes(kArtifactsPath + percent_encode(root + "/MLmodel"), text,
                            kModelCallTimeout_ms);
}

}  // namespace

bool holds_model(const fs::path& folder) {
    std::error_code error;
    return fs::is_regular_file(folder / "MLmodel", error) && !error;
}

Result<std::string> with_ids(std::string_view mlmodel, const std::string& model_id,
                             const std::string& run_id, const std::string& location) {
    std::string text = "artifact_path: " + to_text(Json(location)) + "\nmodel_id: " + model_id +
                       "\nrun_id: " + run_id + "\n";
    bool has_keys = false;
    bool is_skipped = false;
    while (!mlmodel.empty()) {
        const std::size_t end = std::min(mlmodel.find('\n'), mlmodel.size());
        const std::string_view line = mlmodel.substr(0, end);
        mlmodel.remove_prefix(std::min(end + 1, mlmodel.size()));
        if (line == "---" || line == "...") continue;
        const bool is_key =
            !line.empty() && std::string_view(" \t#-").find(line.front()) == std::string_view::npos;
        if (is_key) {
            const std::string_view key = line.substr(0, line.find(':'));
            if (key.size() == line.size() || line.front() == '{' || line.front() == '[')
                return invalid_parameter("the file MLmodel is not what MLflow writes: '" +
                                         std::string(line.substr(0, 80)) +
                                         "' is no line 'key: value'");
            is_skipped =
                std::find(std::begin(kOwnKeys), std::end(kOwnKeys), key) != std::end(kOwnKeys);
            has_keys = has_keys || !is_skipped;
        }
        if (!is_skipped) text += std::string(line) + "\n";
    }
    if (!has_keys) return invalid_parameter("the file MLmodel is empty");
    return text;
}

Result<std::string> log_model(tracker::Client& client, const ModelOrder& order) {
    constexpr std::size_t kMlmodelBytesMax = 16u << 20;
    const Result<std::string> mlmodel_text = read_file(order.folder / "MLmodel", kMlmodelBytesMax);
    if (!mlmodel_text) return invalid_parameter(mlmodel_text.error().text());  // it stays so
    const std::string& mlmodel = *mlmodel_text;
    TUNE_TRY_VOID(with_ids(mlmodel, "m-", order.run_id, ""));  // before anything is made
    TUNE_TRY(found, find_model(client, order));
    if (found && found->is_ready) return found->id;
    TUNE_TRY(answer, client.get(std::string(kApi) +
                                    "runs/get?run_id=" + percent_encode(order.run_id, false),
                                kModelCallTimeout_ms));
    const Json run = answer.value("run", Json::object());
    if (!found) {
        TUNE_TRY(made, make_model(client, order, run));
        found = std::move(made);
    }
    const std::optional<std::int64_t> step = epoch_of(mlmodel);
    TUNE_TRY_VOID(client.post(std::string(kApi) + "runs/outputs",
                              {{"run_id", order.run_id},
                               {"models", {{{"model_id", found->id}, {"step", step.value_or(0)}}}}},
                              kModelCallTimeout_ms));
    TUNE_TRY_VOID(link_metrics(client, order, run, found->id, step));
    TUNE_TRY_VOID(send_files(client, order, *found, mlmodel));
    TUNE_TRY_VOID(client.patch(std::string(kApi) + "logged-models/" + found->id,
                               {{"model_id", found->id}, {"status", "LOGGED_MODEL_READY"}},
                               kModelCallTimeout_ms));
    return found->id;
}

}  // namespace tune::worker
