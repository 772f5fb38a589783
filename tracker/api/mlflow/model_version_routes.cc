// model-versions/*: the versions of registered models and their files, by MLflow's REST API
// (3.17.2).
//
// A version made from "runs:/ID/path" has its files where that run's are; downloads look there and
// nowhere else. Version numbers are validated by the store, after the name, so that errors come in
// MLflow's order.

#include <algorithm>

#include "tracker/api/app.h"
#include "tracker/api/artifacts/artifact_location.h"
#include "tracker/api/artifacts/file_responses.h"
#include "tracker/api/http/handlers.h"
#include "tracker/api/mlflow/registry_routes.h"
#include "tracker/api/mlflow/registry_serializer.h"
#include "tracker/api/mlflow/serializers.h"
#include "tracker/api/mlflow/withheld.h"
#include "tracker/artifacts/artifact_path.h"

namespace tune::tracker {
namespace {

std::string render_version(const Outcome& outcome) {
    return object_response("model_version", std::get<ModelVersion>(outcome), write_model_version);
}

/// The version that a request names. The store validates the number, after the name, as in MLflow.
struct VersionName {
    std::string name;
    std::string version;
};

Result<VersionName> version_name(const Message& message) {
    TUNE_TRY(name, message.required_text("name"));
    TUNE_TRY(version, message.required_text("version"));
    return VersionName{std::move(name), std::move(version)};
}

Result<Command> parse_create_version(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    CreateModelVersion command;
    TUNE_TRY(name, message.required_text("name"));
    TUNE_TRY(source, message.required_text("source"));
    TUNE_TRY(run_id, message.optional_text("run_id"));
    TUNE_TRY(tags, registry_tags(message));
    TUNE_TRY(run_link, message.text("run_link"));
    TUNE_TRY(description, message.text("description"));
    TUNE_TRY(model_id, message.optional_text("model_id"));
    command.name = std::move(name);
    command.source = std::move(source);
    command.run_id = std::move(run_id);
    command.tags = std::move(tags);
    command.run_link = std::move(run_link);
    command.description = std::move(description);
    command.model_id = std::move(model_id);
    return Command(RegistryCommand(std::move(command)));
}

Result<Command> parse_update_version(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(which, version_name(message));
    TUNE_TRY(description, message.optional_text("description"));
    return Command(RegistryCommand(UpdateModelVersion{
        std::move(which.name), std::move(which.version), std::move(description)}));
}

Result<Command> parse_transition(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(which, version_name(message));
    TUNE_TRY(stage, message.required_text("stage"));
    TUNE_TRY(archive, message.boolean("archive_existing_versions"));
    return Command(
        RegistryCommand(TransitionModelVersionStage{std::move(which.name), std::move(which.version),
                                                    std::move(stage), archive.value_or(false)}));
}

Result<Command> parse_delete_version(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(which, version_name(message));
    return Command(
        RegistryCommand(DeleteModelVersion{std::move(which.name), std::move(which.version)}));
}

Result<Command> parse_set_version_tag(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(which, version_name(message));
    TUNE_TRY(tag, registry_tag(message));
    return Command(RegistryCommand(
        SetModelVersionTag{std::move(which.name), std::move(which.version), std::move(tag)}));
}

Result<Command> parse_delete_version_tag(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(which, version_name(message));
    TUNE_TRY(key, message.required_text("key"));
    return Command(RegistryCommand(
        DeleteModelVersionTag{std::move(which.name), std::move(which.version), std::move(key)}));
}

Result<std::string> get_version(const Store& store, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(which, version_name(message));
    TUNE_TRY(version, get_model_version(store, which.name, which.version));
    withhold(version, request.viewer);
    return object_response("model_version", version, write_model_version);
}

Result<std::string> download_uri(const Store& store, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    // MLflow leaves these two to its store, whose sentences differ.
    TUNE_TRY(name, message.text("name"));
    TUNE_TRY(version, message.text("version"));
    TUNE_TRY(uri, get_download_uri(store, name, version));
    JsonWriter out;
    out.begin_object().field("artifact_uri", uri).end_object();
    return out.take();
}

Result<std::string> search_versions(const Store& store, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    SearchModelVersions query;
    TUNE_TRY(filter, message.text("filter"));
    TUNE_TRY(max_results, message.integer_at_most("max_results", kModelVersionsResultsMax));
    TUNE_TRY(order_by, message.texts("order_by"));
    TUNE_TRY(page_token, message.text("page_token"));
    TUNE_TRY_VOID(check_filter(search::Subject::kModelVersions, filter, request.viewer));
    query.filter = std::move(filter);
    // The wire's default is the limit.
    query.max_results = max_results.value_or(kModelVersionsResultsMax);
    query.order_by = std::move(order_by);
    query.page_token = std::move(page_token);
    query.visible_to = request.viewer;
    TUNE_TRY(page, search_model_versions(store, query));
    withhold_each(page.items, request.viewer);
    return model_versions_response(page.items, page.next_page_token);
}

/// A version made of "runs:/<run>/path" has its files where the run's are.
Result<std::string> path_in_storage(const Store& store, const std::string& location,
                                    const std::string& path) {
    constexpr std::string_view kRuns = "runs:/";
    if (!location.starts_with(kRuns)) return path_in_artifacts(location, path);
    const std::string_view rest = std::string_view(location).substr(kRuns.size());
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    TUNE_TRY(info, store.get_run_info(rest.substr(0, slash)));
    TUNE_TRY(folder, normal_artifact_path(rest.substr(std::min(slash + 1, rest.size()))));
    return path_in_artifacts(info.artifact_uri, join_artifact_path(folder, path));
}

Result<Response> get_version_artifact(TrackingParts parts, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(path, message.required_text("path"));
    TUNE_TRY(which, version_name(message));
    TUNE_TRY(checked, normal_artifact_path(path));
    TUNE_TRY(location, get_download_uri(parts.store, which.name, which.version));
    TUNE_TRY(relative, path_in_storage(parts.store, location, checked));
    TUNE_TRY(opened, parts.artifacts.open_file(relative));
    return file_response(std::move(opened), checked);
}

}  // namespace

void add_model_version_routes(Router& router, TrackingParts parts) {
    Store& store = parts.store;
    const RegistryRoutes routes(router, store, "model-versions");
    routes.write(Method::kPost, {Access::kWrite, Subject::kMadeVersion}, "create",
                 "name!, source!, run_id, model_id, tags, run_link, description",
                 parse_create_version, render_version);
    routes.write(Method::kPatch, kEditVersion, "update", "name!, version!, description",
                 parse_update_version, render_version);
    routes.write(Method::kPost, kEditVersion, "transition-stage",
                 "name!, version!, stage!, archive_existing_versions", parse_transition,
                 render_version);
    routes.write(Method::kDelete, kManageVersion, "delete", "name!, version!",
                 parse_delete_version);
    routes.read(Method::kGet, kReadVersion, "get", "name!, version!", get_version);
    routes.read(Method::kGet, kSearchModels, "search", "filter, max_results, order_by, page_token",
                search_versions);
    routes.read(Method::kGet, kReadVersion, "get-download-uri", "name, version", download_uri);
    routes.write(Method::kPost, kEditVersion, "set-tag", "name!, version!, key!, value",
                 parse_set_version_tag);
    routes.write(Method::kDelete, kManageVersion, "delete-tag", "name!, version!, key!",
                 parse_delete_version_tag);
    router.add({Method::kGet, kReadVersion, "/model-versions/get-artifact", Body::kNone,
                "name!, version!, path!",
                [parts](const std::shared_ptr<Request>& request, const Responder& respond) {
                    parts.artifacts.pool().post([parts, request, respond] {
                        Result<Response> response = get_version_artifact(parts, *request);
                        respond(response ? std::move(response).value()
                                         : error_response(response.error()));
                    });
                }});
}

}  // namespace tune::tracker
