// experiments/*: MLflow's experiments, by its REST API (mlflow/server/handlers.py, 3.17.2).
//
// For the attempt of a trial these routes lead to the study's experiment: mlflow.set_experiment in
// a script would otherwise make start_run fail, because the trial's run lies in another experiment
// than the one it asked for. The name that was asked for is kept as a tag of the run.

#include "tracker/api/app.h"
#include "tracker/api/http/handlers.h"
#include "tracker/api/http/message.h"
#include "tracker/api/mlflow/serializers.h"

namespace tune::tracker {
namespace {

constexpr std::size_t kDatasetExperimentsMax = 20;
/// On a trial's run: the experiment that its script asked for in place of the study's.
constexpr const char* kRequestedExperimentTag = "tune.requested_experiment";

Result<Command> parse_create_experiment(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    CreateExperiment command;
    TUNE_TRY(name, message.required_text("name"));
    TUNE_TRY(location, message.text("artifact_location"));
    TUNE_TRY(tags, message.tags("tags"));
    command.name = std::move(name);
    command.artifact_location = std::move(location);
    command.tags = std::move(tags);
    command.owner_id = owner_of(request.principal);
    return Command(std::move(command));
}

std::string render_created(const Outcome& outcome) {
    JsonWriter out;
    out.begin_object()
        .field("experiment_id", std::to_string(std::get<ExperimentId>(outcome)))
        .end_object();
    return out.take();
}

Result<Command> parse_update_experiment(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(id, message.experiment_id());
    TUNE_TRY(name, message.required_text("new_name"));
    return Command(RenameExperiment{id, std::move(name)});
}

template <class CommandOfId>
Result<Command> parse_id(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(id, message.experiment_id());
    return Command(CommandOfId{id});
}

Result<Command> parse_set_experiment_tag(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(id, message.experiment_id());
    TUNE_TRY(key, message.required_text("key"));
    TUNE_TRY(value, message.text("value"));
    return Command(SetExperimentTag{id, {std::move(key), std::move(value)}});
}

Result<Command> parse_delete_experiment_tag(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(id, message.experiment_id());
    TUNE_TRY(key, message.required_text("key"));
    return Command(DeleteExperimentTag{id, std::move(key)});
}

/// The study's experiment, in place of the one that a trial's script named. mlflow.set_experiment
/// looks an experiment up and, in start_run, compares its id with that of the trial's run: with any
/// other answer the script ends there. What was asked for is kept on the run; that the tag cannot
/// be written (the run was deleted) changes nothing about the answer.
Result<Experiment> experiment_of(Store& store, const AttemptPrincipal& attempt,
                                 std::string_view asked) {
    TUNE_TRY(experiment, store.get_experiment(attempt.experiment_id));
    if (asked != experiment.name)
        store.submit(SetTag{attempt.run_id, {kRequestedExperimentTag, std::string(asked)}},
                     [](const Result<Outcome>&) {});
    return experiment;
}

Result<std::string> get_experiment(Store& store, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(id, message.experiment_id());
    const AttemptPrincipal* const attempt = current_attempt(request.principal);
    const bool is_led = attempt != nullptr && id != attempt->experiment_id;
    TUNE_TRY(experiment, is_led ? experiment_of(store, *attempt, "id " + std::to_string(id))
                                : store.get_experiment(id));
    return object_response("experiment", experiment, write_experiment);
}

Result<std::string> get_by_name(Store& store, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(name, message.required_text("experiment_name"));
    const AttemptPrincipal* const attempt = current_attempt(request.principal);
    TUNE_TRY(experiment, attempt != nullptr ? experiment_of(store, *attempt, name)
                                            : store.get_experiment_by_name(name));
    return object_response("experiment", experiment, write_experiment);
}

/// For an attempt, whose script makes the experiment only to put the trial's run into it.
Result<std::string> create_within_trial(Store& store, const Request& request,
                                        const AttemptPrincipal& attempt) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(name, message.required_text("name"));
    TUNE_TRY(experiment, experiment_of(store, attempt, name));
    return render_created(Outcome(experiment.experiment_id));
}

Handler create_handler(Store& store) {
    return [&store, create = write_handler(store, parse_create_experiment, render_created)](
               const std::shared_ptr<Request>& request, const Responder& respond) {
        const AttemptPrincipal* const attempt = current_attempt(request->principal);
        if (attempt == nullptr) return create(request, respond);
        const bool posted = store.post_read([&store, request, respond, attempt] {
            respond(response_of(create_within_trial(store, *request, *attempt)));
        });
        if (!posted) respond(error_response(too_busy()));
    };
}

Result<std::string> search_experiments(const Store& store, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    SearchExperiments query;
    TUNE_TRY(view_type, message.view_type("view_type"));
    // Left out, it is 0 on the wire, which the store refuses as MLflow does.
    TUNE_TRY(max_results, message.integer("max_results"));
    TUNE_TRY(order_by, message.texts("order_by"));
    TUNE_TRY(filter, message.text("filter"));
    TUNE_TRY(page_token, message.text("page_token"));
    query.view_type = view_type.value_or(ViewType::kActiveOnly);
    query.max_results = max_results.value_or(0);
    query.order_by = std::move(order_by);
    query.filter = std::move(filter);
    query.page_token = std::move(page_token);
    query.visible_to = request.viewer;
    TUNE_TRY(page, store.search_experiments(query));
    return experiments_response(page);
}

Result<std::string> search_datasets(const Store& store, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    // Counted before they are looked at, as MLflow does.
    TUNE_TRY(names, message.texts("experiment_ids"));
    if (names.empty())
        return Error{Code::kInvalidParameterValue,
                     "SearchDatasets request must specify at least one experiment_id."};
    if (names.size() > kDatasetExperimentsMax)
        return Error{Code::kInvalidParameterValue,
                     "SearchDatasets request cannot specify more than " +
                         std::to_string(kDatasetExperimentsMax) + " experiment_ids. Received " +
                         std::to_string(names.size()) + " experiment_ids."};
    TUNE_TRY(ids, message.experiment_ids());
    TUNE_TRY(datasets, store.search_datasets(ids));
    return datasets_response(datasets);
}

template <class AnyStore>
ReadResponse with(Store& store, Result<std::string> (*read)(AnyStore&, const Request&)) {
    return [&store, read](const Request& request) { return read(store, request); };
}

}  // namespace

void add_experiment_routes(Router& router, Store& store) {
    const auto add = [&router](Method method, Needs needs, std::string pattern, std::string summary,
                               Handler handler) {
        const Body body = method == Method::kGet ? Body::kNone : Body::kJson;
        router.add_api(2, {method, needs, "/mlflow/experiments/" + pattern, body,
                           std::move(summary), std::move(handler)});
    };
    const auto add_search = [&router](Subject subject, std::string call, std::string summary,
                                      Handler handler) {
        router.add_api(2, {.method = Method::kPost,
                           .access = {Access::kRead, subject},
                           .pattern = "/mlflow/experiments/" + std::move(call),
                           .body = Body::kJson,
                           .summary = std::move(summary),
                           .handler = std::move(handler)});
    };
    constexpr Needs kChange = {Access::kWrite, Subject::kExperiment};
    constexpr Needs kManage = {Access::kWrite, Subject::kWholeExperiment, Permission::kManage};
    add(Method::kPost, {Access::kWrite, Subject::kMadeExperiment}, "create",
        "Create an experiment: name!, artifact_location, tags", create_handler(store));
    add(Method::kPost, kChange, "update", "Rename: experiment_id!, new_name!",
        write_handler(store, parse_update_experiment));
    add(Method::kPost, kManage, "delete", "Delete with all its runs: experiment_id!",
        write_handler(store, parse_id<DeleteExperiment>));
    add(Method::kPost, kManage, "restore", "Restore with all its runs: experiment_id!",
        write_handler(store, parse_id<RestoreExperiment>));
    add(Method::kPost, kChange, "set-experiment-tag", "experiment_id!, key!, value",
        write_handler(store, parse_set_experiment_tag));
    add(Method::kPost, kChange, "delete-experiment-tag", "experiment_id!, key!",
        write_handler(store, parse_delete_experiment_tag));
    add(Method::kGet, {Access::kRead, Subject::kLedExperiment}, "get", "experiment_id!",
        read_handler(store, with(store, get_experiment)));
    add(Method::kGet, {Access::kRead, Subject::kExperimentName}, "get-by-name", "experiment_name!",
        read_handler(store, with(store, get_by_name)));
    add(Method::kGet, {Access::kRead, Subject::kCut}, "search",
        "max_results!, filter, order_by, view_type, page_token",
        read_handler(store, with(store, search_experiments)));
    add_search(Subject::kCut, "search", "max_results!, filter, order_by, view_type, page_token",
               read_handler(store, with(store, search_experiments)));
    add_search(Subject::kExperiments, "search-datasets", "experiment_ids! (at most 20)",
               read_handler(store, with(store, search_datasets)));
}

}  // namespace tune::tracker
