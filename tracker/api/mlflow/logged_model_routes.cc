// logged-models: what log_model and autologging call, by MLflow's REST API (3.17.2). Their
// artifacts: artifact_routes.cc.
//
// Clients send a model's id in the path and again in the body. A body that names another model is
// refused: otherwise permission would be checked for one id and the change made to the other.

#include "tracker/api/app.h"
#include "tracker/api/http/handlers.h"
#include "tracker/api/http/message.h"
#include "tracker/api/mlflow/serializers.h"
#include "tracker/api/mlflow/withheld.h"

namespace tune::tracker {
namespace {

std::string render_logged_model(const Outcome& outcome) {
    return object_response("model", std::get<LoggedModel>(outcome), write_logged_model);
}

Result<Command> parse_create_logged_model(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    CreateLoggedModel command;
    TUNE_TRY(experiment_id, message.experiment_id());
    TUNE_TRY(name, message.text("name"));
    TUNE_TRY(model_type, message.text("model_type"));
    TUNE_TRY(source_run_id, message.text("source_run_id"));
    TUNE_TRY(params, message.params("params"));
    TUNE_TRY(tags, message.tags("tags"));
    command.experiment_id = experiment_id;
    command.name = std::move(name);
    command.model_type = std::move(model_type);
    // What an attempt makes is its run's: there its credential may write.
    const AttemptPrincipal* const attempt = current_attempt(request.principal);
    command.source_run_id =
        source_run_id.empty() && attempt != nullptr ? attempt->run_id : std::move(source_run_id);
    command.params = std::move(params);
    command.tags = std::move(tags);
    return Command(std::move(command));
}

/// The model of the path. Clients repeat it in the body; a different one there is refused, so that
/// no check can look at one id and the change happen to another.
Result<std::string> model_id_of(const Request& request, const Message& message) {
    TUNE_TRY(in_body, message.text("model_id"));
    const std::string& in_path = request.parameter("model_id");
    if (!in_body.empty() && in_body != in_path)
        return Error{Code::kInvalidParameterValue, "The request's path names the model '" +
                                                       in_path + "', its body '" + in_body + "'."};
    return in_path;
}

Result<Command> parse_finalize(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(model_id, model_id_of(request, message));
    TUNE_TRY(status, message.model_status("status"));
    if (!status || *status == LoggedModelStatus::kUnspecified)
        return Error{Code::kInvalidParameterValue,
                     std::string("Missing value for required parameter 'status'.") + kSeeDocs};
    return Command(FinalizeLoggedModel{std::move(model_id), *status});
}

Result<Command> parse_set_tags(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(model_id, model_id_of(request, message));
    TUNE_TRY(tags, message.tags("tags"));
    return Command(SetLoggedModelTags{std::move(model_id), std::move(tags)});
}

Result<Command> parse_log_params(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(model_id, model_id_of(request, message));
    TUNE_TRY(params, message.params("params"));
    return Command(LogLoggedModelParams{std::move(model_id), std::move(params)});
}

Result<Command> parse_delete_logged_model_tag(const Request& request) {
    return Command(
        DeleteLoggedModelTag{request.parameter("model_id"), request.parameter("tag_key")});
}

Result<Command> parse_delete_logged_model(const Request& request) {
    return Command(DeleteLoggedModel{request.parameter("model_id")});
}

Result<std::string> get_logged_model(const Store& store, const Request& request) {
    TUNE_TRY(model, store.get_logged_model(request.parameter("model_id")));
    withhold(model, request.viewer);
    return object_response("model", model, write_logged_model);
}

Result<std::vector<LoggedModelOrder>> read_order(const Message& message) {
    TUNE_TRY(items, message.messages("order_by"));
    std::vector<LoggedModelOrder> order;
    for (const Message& item : items) {
        TUNE_TRY(field_name, item.text("field_name"));
        TUNE_TRY(ascending, item.boolean("ascending"));
        TUNE_TRY(dataset_name, item.text("dataset_name"));
        TUNE_TRY(dataset_digest, item.text("dataset_digest"));
        order.push_back({std::move(field_name), ascending.value_or(true), std::move(dataset_name),
                         std::move(dataset_digest)});
    }
    return order;
}

Result<std::string> search_logged_models(const Store& store, const Request& request) {
    constexpr std::int64_t kUnsetOnTheWire = 50;
    TUNE_TRY(message, Message::read(request));
    SearchLoggedModels query;
    TUNE_TRY(experiment_ids, message.experiment_ids());
    TUNE_TRY(has_ids, message.has("experiment_ids"));
    if (!has_ids)
        return Error{
            Code::kInvalidParameterValue,
            std::string("Missing value for required parameter 'experiment_ids'.") + kSeeDocs};
    TUNE_TRY(filter, message.text("filter"));
    TUNE_TRY_VOID(check_filter(search::Subject::kLoggedModels, filter, request.viewer));
    TUNE_TRY(datasets, message.messages("datasets"));
    for (const Message& item : datasets) {
        TUNE_TRY(name, item.text("dataset_name"));
        TUNE_TRY(digest, item.text("dataset_digest"));
        query.datasets.push_back({std::move(name), std::move(digest)});
    }
    TUNE_TRY(max_results, message.integer("max_results"));
    TUNE_TRY(order_by, read_order(message));
    TUNE_TRY(page_token, message.text("page_token"));
    TUNE_TRY(readable, readable_experiments(store, request, std::move(experiment_ids),
                                            ResourceType::kLoggedModel));
    query.experiment_ids = std::move(readable);
    query.filter = std::move(filter);
    // An explicit 0 means the store's default, as in MLflow.
    const std::int64_t asked = max_results.value_or(kUnsetOnTheWire);
    if (asked != 0) query.max_results = asked;
    query.order_by = std::move(order_by);
    query.page_token = std::move(page_token);
    TUNE_TRY(page, store.search_logged_models(query));
    withhold_each(page.items, request.viewer);
    return logged_models_response(page);
}

}  // namespace

void add_logged_model_routes(Router& router, Store& store) {
    const auto add = [&router](Method method, Needs needs, std::string pattern, std::string summary,
                               Handler handler) {
        const Body body =
            method == Method::kGet || method == Method::kDelete ? Body::kNone : Body::kJson;
        router.add_api(2, {method, needs, "/mlflow/logged-models" + pattern, body,
                           std::move(summary), std::move(handler)});
    };
    constexpr Needs kChange = {Access::kWrite, Subject::kLoggedModel};
    constexpr Needs kManage = {Access::kWrite, Subject::kLoggedModel, Permission::kManage};
    add(Method::kPost, {Access::kWrite, Subject::kMadeLoggedModel}, "",
        "experiment_id!, name, model_type, source_run_id, params, tags",
        write_handler(store, parse_create_logged_model, render_logged_model));
    router.add_api(2, {.method = Method::kPost,
                       .access = {Access::kRead, Subject::kCut},
                       .pattern = "/mlflow/logged-models/search",
                       .body = Body::kJson,
                       .summary = "experiment_ids!, filter, datasets, max_results, order_by",
                       .handler = read_handler(store, [&store](const Request& request) {
                           return search_logged_models(store, request);
                       })});
    add(Method::kGet, {Access::kRead, Subject::kLoggedModel}, "/{model_id}", "One logged model",
        read_handler(
            store, [&store](const Request& request) { return get_logged_model(store, request); }));
    add(Method::kPatch, kChange, "/{model_id}", "Finalize: status!",
        write_handler(store, parse_finalize, render_logged_model));
    add(Method::kDelete, kManage, "/{model_id}", "Delete",
        write_handler(store, parse_delete_logged_model));
    add(Method::kPatch, kChange, "/{model_id}/tags", "tags", write_handler(store, parse_set_tags));
    add(Method::kDelete, kManage, "/{model_id}/tags/{tag_key...}", "Delete one tag",
        write_handler(store, parse_delete_logged_model_tag));
    add(Method::kPost, kChange, "/{model_id}/params", "params",
        write_handler(store, parse_log_params));
}

}  // namespace tune::tracker
