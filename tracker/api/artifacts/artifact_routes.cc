// The artifact proxy (mlflow-artifacts/*) and the artifacts of runs and logged models.
//
// Paths come from clients: ArtifactStore resolves none that would leave its folder, and the routes
// of runs and models refuse such a path before they look anything up. Checks and their errors come
// in MLflow's order: a bad path is reported before a missing run. Uploads are streamed into a
// BodySink and take effect when they are complete; a Content-Range appends to a file whose length
// nobody knows yet.

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "tracker/api/app.h"
#include "tracker/api/artifacts/artifact_handlers.h"
#include "tracker/api/artifacts/artifact_location.h"
#include "tracker/api/artifacts/artifact_upload.h"
#include "tracker/api/artifacts/file_responses.h"
#include "tracker/api/http/handlers.h"
#include "tracker/api/http/message.h"
#include "tracker/api/mlflow/serializers.h"
#include "tracker/artifacts/artifact_path.h"

namespace tune::tracker {
namespace {

constexpr std::uint64_t kUploadArtifactBytesMax = 10u << 20;
constexpr const char* kTooLarge = "Artifact size is too large. Max size is 10MB.";
constexpr int kPresignedSecondsMax = 604'800;

Handler fixed_error_handler(Code code, std::string message) {
    return [error = Error{code, std::move(message)}](const std::shared_ptr<Request>&,
                                                     const Responder& respond) {
        respond(error_response(error));
    };
}

// --- the proxy -----------------------------------------------------------------------------------

Result<Response> download(const ArtifactStore& artifacts, const Request& request) {
    const std::string& path = request.parameter("path");
    TUNE_TRY(opened, artifacts.open_file(path));
    return file_response(std::move(opened), path);
}

Result<Response> list(const ArtifactStore& artifacts, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(path, message.text("path"));
    TUNE_TRY(entries, artifacts.list(path));
    // Folders of runs are named by their ids.
    if (request.viewer && request.viewer->is_denied(ResourceType::kRun))
        std::erase_if(entries,
                      [](const ArtifactEntry& entry) { return is_run_folder(entry.name); });
    return json_text_response(files_response("", "", entries));
}

Result<Response> remove(const ArtifactStore& artifacts, const Request& request) {
    TUNE_TRY_VOID(artifacts.remove(request.parameter("path")));
    return json_text_response("{}");
}

/// "bytes 100-199/*": the end of a file is uploaded, whose whole length nobody knows yet.
Result<std::optional<UploadRange>> uploaded_range(std::string_view header) {
    if (header.empty()) return std::optional<UploadRange>();
    constexpr std::string_view kUnit = "bytes ";
    const char* const end = header.data() + header.size();
    UploadRange range;
    std::uint64_t last = 0;
    const char* at = header.data() + std::min(kUnit.size(), header.size());
    bool is_good = header.starts_with(kUnit);
    const auto read = [&](std::uint64_t& number, std::string_view after) {
        const auto [next, error] = std::from_chars(at, end, number);
        is_good = is_good && error == std::errc() && std::string_view(next, end).starts_with(after);
        at = is_good ? next + after.size() : end;
    };
    read(range.begin, "-");
    read(last, "/*");
    constexpr std::uint64_t kLastMax = std::numeric_limits<std::int64_t>::max() - 1;
    if (!is_good || at != end || last < range.begin || last > kLastMax)
        return Error{Code::kBadRequest,
                     "Content-Range must be 'bytes FIRST-LAST/*' in an upload, found '" +
                         std::string(header.substr(0, 100)) + "'."};
    range.end = last + 1;
    return std::optional(range);
}

Result<std::unique_ptr<BodySink>> open_proxy_upload(TrackingParts parts, const Request& request) {
    const std::string& path = request.parameter("path");
    TUNE_TRY(checked, artifact_file_path(path));
    UploadTarget target;
    TUNE_TRY(range, uploaded_range(request.header("Content-Range")));
    target.range = range;
    target.resolve_path = [checked]() -> Result<std::string> { return checked; };
    target.on_done = [&hub = parts.hub](const std::string& done) { announce_artifact(hub, done); };
    return make_upload_sink(parts.artifacts, std::move(target));
}

// --- runs and logged models ----------------------------------------------------------------------

Result<Response> list_of_run(TrackingParts parts, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(run_id, message.run_id());
    TUNE_TRY(path, message.text("path"));
    TUNE_TRY(folder, normal_artifact_path(path));
    TUNE_TRY(info, parts.store.get_run_info(run_id));
    TUNE_TRY(relative, path_in_artifacts(info.artifact_uri, folder));
    TUNE_TRY(entries, parts.artifacts.list(relative));
    return json_text_response(files_response(info.artifact_uri, folder, entries));
}

Result<Response> get_artifact(TrackingParts parts, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(path, message.required_text("path"));
    TUNE_TRY(checked, normal_artifact_path(path));  // reported before a missing run, as MLflow does
    const Result<std::string> run_id = message.run_id();
    if (!run_id) return Error{Code::kResourceDoesNotExist, "Run with id=None not found"};
    TUNE_TRY(info, parts.store.get_run_info(*run_id));
    TUNE_TRY(relative, path_in_artifacts(info.artifact_uri, checked));
    TUNE_TRY(opened, parts.artifacts.open_file(relative));
    return file_response(std::move(opened), checked);
}

Result<Response> list_of_model(TrackingParts parts, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(path, message.text("artifact_directory_path"));
    TUNE_TRY(folder, normal_artifact_path(path));
    TUNE_TRY(model, parts.store.get_logged_model(request.parameter("model_id")));
    TUNE_TRY(relative, path_in_artifacts(model.artifact_uri, folder));
    TUNE_TRY(entries, parts.artifacts.list(relative));
    return json_text_response(files_response(model.artifact_uri, folder, entries));
}

Result<Response> get_model_file(TrackingParts parts, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(path, message.required_text("artifact_file_path"));
    TUNE_TRY(model, parts.store.get_logged_model(request.parameter("model_id")));
    TUNE_TRY(relative, path_in_artifacts(model.artifact_uri, path));
    TUNE_TRY(opened, parts.artifacts.open_file(relative));
    return file_response(std::move(opened), path);
}

Result<std::unique_ptr<BodySink>> open_run_upload(TrackingParts parts, const Request& request) {
    const std::string run_id(request.query_value("run_uuid").value_or(""));
    const std::string path(request.query_value("path").value_or(""));
    if (run_id.empty())
        return Error{Code::kInvalidParameterValue, "Request must specify run_uuid."};
    if (path.empty()) return Error{Code::kInvalidParameterValue, "Request must specify path."};
    TUNE_TRY(checked, artifact_file_path(path));
    const std::string_view length = request.header("Content-Length");
    std::uint64_t announced = 0;
    std::from_chars(length.data(), length.data() + length.size(), announced);
    if (announced > kUploadArtifactBytesMax) return Error{Code::kInvalidParameterValue, kTooLarge};
    UploadTarget target;
    target.bytes_max = kUploadArtifactBytesMax;
    target.too_large = kTooLarge;
    target.empty = "Request must specify data.";
    target.resolve_path = [&store = parts.store, run_id, checked]() -> Result<std::string> {
        TUNE_TRY(info, store.get_run_info(run_id));
        return path_in_artifacts(info.artifact_uri, checked);
    };
    target.on_done = [&hub = parts.hub](const std::string& done) { announce_artifact(hub, done); };
    return make_upload_sink(parts.artifacts, std::move(target));
}

// --- presigned URLs: this store has none ---------------------------------------------------------

Result<std::string> uri_of_owner(const Store& store, const std::string& run_id,
                                 const std::string& model_id) {
    if (!run_id.empty()) {
        TUNE_TRY(info, store.get_run_info(run_id));
        return info.artifact_uri;
    }
    TUNE_TRY(model, store.get_logged_model(model_id));
    return model.artifact_uri;
}

Error presigned_unsupported(std::string_view what, const std::string& uri) {
    const std::string scheme = uri.substr(0, uri.find(':'));
    if (scheme == "mlflow-artifacts" || scheme == "http" || scheme == "https")
        return {Code::kInvalidParameterValue,
                "Presigned " + std::string(what) +
                    " is not supported for proxied artifact storage (artifact URI scheme: " +
                    scheme + "). This endpoint requires a direct cloud storage artifact URI."};
    return {Code::kNotImplemented, "Presigned " + std::string(what) +
                                       " is not supported for the current artifact repository"};
}

Result<std::string> presigned_upload(const Store& store, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(path, message.required_text("path"));
    TUNE_TRY(run_id, message.text("run_id"));
    TUNE_TRY(model_id, message.text("model_id"));
    if (run_id.empty() == model_id.empty())
        return Error{Code::kInvalidParameterValue,
                     "Exactly one of run_id and model_id must be provided."};
    TUNE_TRY_VOID(normal_artifact_path(path));
    TUNE_TRY(uri, uri_of_owner(store, run_id, model_id));
    return presigned_unsupported("upload", uri);
}

Result<std::string> presigned_download(const Store& store, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(run_id, message.required_text("run_id"));
    TUNE_TRY(path, message.required_text("path"));
    TUNE_TRY(expiration, message.integer("expiration"));
    if (expiration && (*expiration < 1 || *expiration > kPresignedSecondsMax))
        return Error{Code::kInvalidParameterValue,
                     "expiration must be between 1 and 604800 "
                     "seconds (got " +
                         std::to_string(*expiration) + ")."};
    TUNE_TRY_VOID(normal_artifact_path(path));
    TUNE_TRY(uri, uri_of_owner(store, run_id, ""));
    return presigned_unsupported("download", uri);
}

void add_proxy_routes(Router& router, TrackingParts parts) {
    constexpr Needs kReadPath = {Access::kRead, Subject::kArtifact};
    const std::string base = "/mlflow-artifacts";
    ArtifactStore& store = parts.artifacts;
    router.add_api(
        2,
        {Method::kGet, kReadPath, base + "/artifacts", Body::kNone, "List a folder: path",
         pool_handler(store, [&store](const Request& request) { return list(store, request); })});
    router.add_api(2, {Method::kGet, kReadPath, base + "/artifacts/{path...}", Body::kNone,
                       "Download", pool_handler(store, [&store](const Request& request) {
                           return download(store, request);
                       })});
    router.add_api(2, {Method::kPut,
                       {Access::kWrite, Subject::kArtifact},
                       base + "/artifacts/{path...}",
                       Body::kStream,
                       "Upload",
                       nullptr,
                       [parts](const std::shared_ptr<Request>& request) {
                           return open_proxy_upload(parts, *request);
                       }});
    router.add_api(
        2,
        {Method::kDelete,
         {Access::kWrite, Subject::kArtifact, Permission::kManage},
         base + "/artifacts/{path...}",
         Body::kNone,
         "Delete",
         pool_handler(store, [&store](const Request& request) { return remove(store, request); })});
    router.add_api(
        2, {Method::kGet, kReadPath, base + "/presigned/{path...}", Body::kNone, "Not supported",
            fixed_error_handler(Code::kNotImplemented,
                                "Multipart download is not supported for the current "
                                "artifact repository")});
}

}  // namespace

void announce_artifact(EventHub& hub, std::string_view path) {
    constexpr std::string_view kFolder = "/artifacts/";
    const std::size_t run_begin = path.find('/') + 1;
    const std::size_t run_end = path.find('/', run_begin);
    if (run_begin == 0 || run_end == std::string_view::npos) return;
    if (!path.substr(run_end).starts_with(kFolder)) return;
    const std::string run_id(path.substr(run_begin, run_end - run_begin));
    const std::string topic = "run:" + run_id;
    if (!hub.wanted(topic)) return;
    std::int64_t experiment_id = kOfNoExperiment;
    std::from_chars(path.data(), path.data() + run_begin - 1, experiment_id);
    hub.publish(topic, "artifacts",
                {{"run_id", run_id}, {"path", path.substr(run_end + kFolder.size())}},
                experiment_id);
}

void add_artifact_routes(Router& router, TrackingParts parts) {
    constexpr Needs kReadRun = {Access::kRead, Subject::kRun};
    constexpr Needs kReadLoggedModel = {Access::kRead, Subject::kLoggedModel};
    add_proxy_routes(router, parts);
    const auto on_pool = [parts](Result<Response> (*work)(TrackingParts, const Request&)) {
        return pool_handler(parts.artifacts,
                            [parts, work](const Request& request) { return work(parts, request); });
    };
    const auto on_reader = [parts](Result<std::string> (*read)(const Store&, const Request&)) {
        return read_handler(parts.store, [&store = parts.store, read](const Request& request) {
            return read(store, request);
        });
    };
    router.add_api(2, {Method::kGet, kReadRun, "/mlflow/artifacts/list", Body::kNone,
                       "run_id!, path", on_pool(list_of_run)});
    router.add_api(2, {Method::kPost,
                       {Access::kWrite, Subject::kRunOrLoggedModel},
                       "/mlflow/artifacts/presigned-upload-url",
                       Body::kJson,
                       "run_id or model_id, path!",
                       on_reader(presigned_upload)});
    router.add_api(2, {.method = Method::kPost,
                       .access = kReadRun,
                       .pattern = "/mlflow/artifacts/presigned-download-url",
                       .body = Body::kJson,
                       .summary = "run_id!, path!, expiration",
                       .handler = on_reader(presigned_download)});
    router.add_api(2, {Method::kGet, kReadLoggedModel,
                       "/mlflow/logged-models/{model_id}/artifacts/directories", Body::kNone,
                       "artifact_directory_path", on_pool(list_of_model)});
    router.add({Method::kGet, kReadLoggedModel,
                "/ajax-api/2.0/mlflow/logged-models/{model_id}/artifacts/files", Body::kNone,
                "artifact_file_path!", on_pool(get_model_file)});
    router.add({Method::kGet, kReadRun, "/get-artifact", Body::kNone, "run_id!, path!",
                on_pool(get_artifact)});
    router.add({Method::kPost,
                {Access::kWrite, Subject::kRun},
                "/ajax-api/2.0/mlflow/upload-artifact",
                Body::kStream,
                "run_uuid!, path!; at most 10 MiB",
                nullptr,
                [parts](const std::shared_ptr<Request>& request) {
                    return open_run_upload(parts, *request);
                }});
}

}  // namespace tune::tracker
