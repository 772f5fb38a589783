// runs/*: creating, changing and searching runs. What is logged to them: logging_routes.cc.

#include "tracker/api/app.h"
#include "tracker/api/http/handlers.h"
#include "tracker/api/http/message.h"
#include "tracker/api/mlflow/parent_run.h"
#include "tracker/api/mlflow/run_search.h"
#include "tracker/api/mlflow/run_serializer.h"
#include "tracker/api/mlflow/serializers.h"

namespace tune::tracker {
namespace {

Result<Command> parse_create_run(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    CreateRun command;
    TUNE_TRY(experiment_id, message.experiment_id());
    TUNE_TRY(start_time, message.integer("start_time"));
    TUNE_TRY(run_name, message.text("run_name"));
    TUNE_TRY(user_id, message.text("user_id"));
    TUNE_TRY(tags, message.tags("tags"));
    command.experiment_id = experiment_id;
    command.start_time_ms = start_time.value_or(0);
    command.run_name = std::move(run_name);
    command.user_id = std::move(user_id);
    command.tags = std::move(tags);
    put_beneath_trial(command.tags, request.principal);
    return Command(std::move(command));
}

std::string render_run(const Outcome& outcome) {
    return object_response("run", std::get<Run>(outcome), write_new_run);
}

Result<Command> parse_update_run(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    UpdateRun command;
    TUNE_TRY(run_id, message.run_id());
    TUNE_TRY(end_time, message.integer("end_time"));
    TUNE_TRY(status, message.run_status("status"));
    TUNE_TRY(run_name, message.text("run_name"));
    command.run_id = std::move(run_id);
    command.end_time_ms = end_time;
    command.status = status;
    command.run_name = std::move(run_name);
    return Command(std::move(command));
}

std::string render_run_info(const Outcome& outcome) {
    return object_response("run_info", std::get<RunInfo>(outcome), write_run_info);
}

template <class CommandOfId>
Result<Command> parse_run_id(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(run_id, message.run_id());
    return Command(CommandOfId{std::move(run_id)});
}

}  // namespace

void add_run_routes(Router& router, Store& store) {
    const auto add = [&router](Method method, Needs needs, std::string pattern, std::string summary,
                               Handler handler) {
        const Body body = method == Method::kGet ? Body::kNone : Body::kJson;
        router.add_api(2, {method, needs, "/mlflow/runs/" + pattern, body, std::move(summary),
                           std::move(handler)});
    };
    constexpr Needs kChange = {Access::kWrite, Subject::kRun};
    constexpr Needs kManage = {Access::kWrite, Subject::kRun, Permission::kManage};
    add(Method::kPost, {Access::kWrite, Subject::kMadeRun}, "create",
        "experiment_id!, run_name, start_time, user_id, tags",
        write_handler(store, parse_create_run, render_run));
    add(Method::kPost, kChange, "update", "run_id!, status, end_time, run_name",
        write_handler(store, parse_update_run, render_run_info));
    add(Method::kPost, kManage, "delete", "run_id!", write_handler(store, parse_run_id<DeleteRun>));
    add(Method::kPost, kManage, "restore", "run_id!",
        write_handler(store, parse_run_id<RestoreRun>));
    add(Method::kGet, {Access::kRead, Subject::kRun}, "get", "run_id!, fields",
        read_handler(
            store, [&store](const Request& request) { return get_run_response(store, request); }));
    router.add_api(
        2, {.method = Method::kPost,
            .access = {Access::kRead, Subject::kCut},
            .pattern = "/mlflow/runs/search",
            .body = Body::kJson,
            .summary =
                "experiment_ids, filter, run_view_type, max_results, order_by, page_token, fields",
            .handler = search_runs_handler(store)});
}

}  // namespace tune::tracker
