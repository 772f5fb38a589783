// registered-models/*: the models of the registry, their tags and aliases, by MLflow's REST API
// (3.17.2). Handlers parse and render; names, stages and aliases are checked by the store, in
// MLflow's order and words.

#include "tracker/api/app.h"
#include "tracker/api/http/handlers.h"
#include "tracker/api/mlflow/registry_routes.h"
#include "tracker/api/mlflow/registry_serializer.h"
#include "tracker/api/mlflow/serializers.h"
#include "tracker/api/mlflow/withheld.h"

namespace tune::tracker {
namespace {

constexpr std::int64_t kResultsDefault = 100;

std::string render_registered_model(const Outcome& outcome) {
    return object_response("registered_model", std::get<RegisteredModel>(outcome),
                           write_registered_model);
}

Result<Command> parse_create_registered_model(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(name, message.required_text("name"));
    TUNE_TRY(tags, registry_tags(message));
    TUNE_TRY(description, message.text("description"));
    return Command(RegistryCommand(CreateRegisteredModel{
        std::move(name), std::move(tags), std::move(description), owner_of(request.principal)}));
}

Result<Command> parse_rename(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(name, message.required_text("name"));
    TUNE_TRY(new_name, message.required_text("new_name"));
    return Command(RegistryCommand(RenameRegisteredModel{std::move(name), std::move(new_name)}));
}

Result<Command> parse_update_registered_model(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(name, message.required_text("name"));
    TUNE_TRY(description, message.text("description"));
    return Command(RegistryCommand(UpdateRegisteredModel{std::move(name), std::move(description)}));
}

Result<Command> parse_delete_registered_model(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(name, message.required_text("name"));
    return Command(RegistryCommand(DeleteRegisteredModel{std::move(name)}));
}

Result<Command> parse_set_registered_model_tag(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(name, message.required_text("name"));
    TUNE_TRY(tag, registry_tag(message));
    return Command(RegistryCommand(SetRegisteredModelTag{std::move(name), std::move(tag)}));
}

Result<Command> parse_delete_registered_model_tag(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(name, message.required_text("name"));
    TUNE_TRY(key, message.required_text("key"));
    return Command(RegistryCommand(DeleteRegisteredModelTag{std::move(name), std::move(key)}));
}

Result<Command> parse_set_alias(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(name, message.required_text("name"));
    TUNE_TRY(alias, message.required_text("alias"));
    TUNE_TRY(version, message.required_text("version"));
    return Command(RegistryCommand(
        SetRegisteredModelAlias{std::move(name), std::move(alias), std::move(version)}));
}

Result<Command> parse_delete_alias(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(name, message.required_text("name"));
    TUNE_TRY(alias, message.required_text("alias"));
    return Command(RegistryCommand(DeleteRegisteredModelAlias{std::move(name), std::move(alias)}));
}

Result<std::string> get_registered_model(const Store& store, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(name, message.required_text("name"));
    TUNE_TRY(model, get_registered_model(store, name));
    withhold(model, request.viewer);
    return object_response("registered_model", model, write_registered_model);
}

Result<std::string> get_by_alias(const Store& store, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(name, message.required_text("name"));
    TUNE_TRY(alias, message.required_text("alias"));
    TUNE_TRY(version, get_model_version_by_alias(store, name, alias));
    withhold(version, request.viewer);
    return object_response("model_version", version, write_model_version);
}

Result<std::string> latest_versions(const Store& store, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(name, message.required_text("name"));
    TUNE_TRY(stages, message.texts("stages"));
    TUNE_TRY(versions, get_latest_versions(store, name, stages));
    withhold_each(versions, request.viewer);
    return model_versions_response(versions, "");
}

Result<std::string> search_registered_models(const Store& store, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    SearchRegisteredModels query;
    TUNE_TRY(filter, message.text("filter"));
    TUNE_TRY(max_results, message.integer_at_most("max_results", kRegisteredModelsResultsMax));
    TUNE_TRY(order_by, message.texts("order_by"));
    TUNE_TRY(page_token, message.text("page_token"));
    query.filter = std::move(filter);
    query.max_results = max_results.value_or(kResultsDefault);
    query.order_by = std::move(order_by);
    query.page_token = std::move(page_token);
    query.visible_to = request.viewer;
    TUNE_TRY(page, search_registered_models(store, query));
    withhold_each(page.items, request.viewer);
    return registered_models_response(page);
}

}  // namespace

void add_registered_model_routes(Router& router, Store& store) {
    const RegistryRoutes routes(router, store, "registered-models");
    routes.write(Method::kPost, {Access::kWrite, Subject::kMadeModel}, "create",
                 "name!, tags, description", parse_create_registered_model,
                 render_registered_model);
    routes.write(Method::kPost, kEditModel, "rename", "name!, new_name!", parse_rename,
                 render_registered_model);
    routes.write(Method::kPatch, kEditModel, "update", "name!, description",
                 parse_update_registered_model, render_registered_model);
    routes.write(Method::kDelete, kDeleteModel, "delete", "name!", parse_delete_registered_model);
    routes.read(Method::kGet, kReadModel, "get", "name!", get_registered_model);
    routes.read(Method::kGet, kSearchModels, "search", "filter, max_results, order_by, page_token",
                search_registered_models);
    routes.read(Method::kPost, kReadVersion, "get-latest-versions", "name!, stages",
                latest_versions);
    routes.read(Method::kGet, kReadVersion, "get-latest-versions", "name!, stages",
                latest_versions);
    routes.write(Method::kPost, kEditModel, "set-tag", "name!, key!, value",
                 parse_set_registered_model_tag);
    routes.write(Method::kDelete, kEditModel, "delete-tag", "name!, key!",
                 parse_delete_registered_model_tag);
    routes.write(Method::kPost, kEditAlias, "alias", "name!, alias!, version!", parse_set_alias);
    routes.write(Method::kDelete, kManageAlias, "alias", "name!, alias!", parse_delete_alias);
    routes.read(Method::kGet, kReadVersion, "alias", "name!, alias!", get_by_alias);
}

}  // namespace tune::tracker
