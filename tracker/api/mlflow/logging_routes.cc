// What training scripts send: metrics, params, tags, inputs and outputs of a run, by MLflow's REST
// API (3.17.2).
//
// log-metric and log-batch are most of the load, so the usual form of their bodies is read by
// fast_parse.cc without a JSON tree. It accepts less than the general parser and never anything
// else; whatever it does not recognise goes the slow way, which also words all errors. Both ways
// check the same rules before they write.

#include "tracker/api/app.h"
#include "tracker/api/http/fast_parse.h"
#include "tracker/api/http/handlers.h"
#include "tracker/api/http/message.h"

namespace tune::tracker {
namespace {

Result<Command> parse_log_metric(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(run_id, message.run_id());
    TUNE_TRY(metric, message.metric());
    return Command(LogMetric{std::move(run_id), std::move(metric)});
}

Result<Command> parse_log_batch(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    LogBatch command;
    TUNE_TRY(run_id, message.required_text("run_id"));
    TUNE_TRY(metrics, message.messages("metrics"));
    for (const Message& item : metrics) {
        TUNE_TRY(metric, item.metric());
        command.metrics.push_back(std::move(metric));
    }
    TUNE_TRY(params, message.params("params"));
    TUNE_TRY(tags, message.tags("tags"));
    command.run_id = std::move(run_id);
    command.params = std::move(params);
    command.tags = std::move(tags);
    return Command(std::move(command));
}

Result<void> check_metrics(const Router& router, const Request& request, const LogMetric& command) {
    return router.check_metrics(request, command.run_id, {&command.metric, 1});
}

Result<void> check_metrics(const Router& router, const Request& request, const LogBatch& command) {
    return router.check_metrics(request, command.run_id, command.metrics);
}

/// `parse`, and whether who asks may log these metrics.
template <class Logging>
ParseCommand checked(const Router& router, Result<Command> (*parse)(const Request&)) {
    return [&router, parse](const Request& request) -> Result<Command> {
        TUNE_TRY(command, parse(request));
        TUNE_TRY_VOID(check_metrics(router, request, std::get<Logging>(command)));
        return command;
    };
}

/// The usual form by the fast parser, anything else by `slow`, which also names errors.
template <class Logging>
Handler hot_handler(const Router& router, Store& store,
                    std::optional<Logging> (*fast)(std::string&),
                    Result<Command> (*slow)(const Request&)) {
    return [&router, &store, fast,
            slow_handler = write_handler(store, checked<Logging>(router, slow))](
               const std::shared_ptr<Request>& request, const Responder& respond) {
        if (takes_fast_way(*request)) {
            if (auto command = fast(request->body)) {
                const Result<void> may = check_metrics(router, *request, *command);
                if (!may) return respond(error_response(may.error()));
                store.submit(std::move(*command), [respond](const Result<Outcome>& outcome) {
                    respond(outcome ? json_text_response("{}") : error_response(outcome.error()));
                });
                return;
            }
        }
        slow_handler(request, respond);
    };
}

Result<Command> parse_log_param(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(run_id, message.run_id());
    TUNE_TRY(key, message.required_text("key"));
    TUNE_TRY(value, message.text("value"));
    return Command(LogParam{std::move(run_id), {std::move(key), std::move(value)}});
}

Result<Command> parse_set_run_tag(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(run_id, message.run_id());
    TUNE_TRY(key, message.required_text("key"));
    TUNE_TRY(value, message.text("value"));
    return Command(SetTag{std::move(run_id), {std::move(key), std::move(value)}});
}

Result<Command> parse_delete_run_tag(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(run_id, message.run_id());
    TUNE_TRY(key, message.required_text("key"));
    return Command(DeleteTag{std::move(run_id), std::move(key)});
}

Result<DatasetInput> read_dataset_input(const Message& message) {
    DatasetInput input;
    TUNE_TRY(tags, message.tags("tags"));
    TUNE_TRY(dataset, message.message("dataset"));
    TUNE_TRY(name, dataset.required_text("name"));
    TUNE_TRY(digest, dataset.text("digest"));
    TUNE_TRY(source_type, dataset.text("source_type"));
    TUNE_TRY(source, dataset.text("source"));
    TUNE_TRY(schema, dataset.optional_text("schema"));
    TUNE_TRY(profile, dataset.optional_text("profile"));
    input.tags = std::move(tags);
    input.dataset.name = std::move(name);
    input.dataset.digest = std::move(digest);
    input.dataset.source_type = std::move(source_type);
    input.dataset.source = std::move(source);
    input.dataset.schema = std::move(schema);
    input.dataset.profile = std::move(profile);
    return input;
}

Result<Command> parse_log_inputs(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    LogInputs command;
    TUNE_TRY(run_id, message.required_text("run_id"));
    TUNE_TRY(datasets, message.messages("datasets"));
    for (const Message& item : datasets) {
        TUNE_TRY(input, read_dataset_input(item));
        command.datasets.push_back(std::move(input));
    }
    TUNE_TRY(models, message.messages("models"));
    for (const Message& item : models) {
        TUNE_TRY(model_id, item.required_text("model_id"));
        command.models.push_back({std::move(model_id)});
    }
    command.run_id = std::move(run_id);
    return Command(std::move(command));
}

Result<Command> parse_log_outputs(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    LogOutputs command;
    TUNE_TRY(run_id, message.required_text("run_id"));
    TUNE_TRY(has_models, message.has("models"));
    if (!has_models) return message.required_text("models").error();
    TUNE_TRY(models, message.messages("models"));
    for (const Message& item : models) {
        TUNE_TRY(model_id, item.required_text("model_id"));
        TUNE_TRY(step, item.integer("step"));
        command.models.push_back({std::move(model_id), step.value_or(0)});
    }
    command.run_id = std::move(run_id);
    return Command(std::move(command));
}

Result<Command> parse_log_model(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(run_id, message.required_text("run_id"));
    TUNE_TRY(model_json, message.required_text("model_json"));
    return Command(RecordLoggedModel{std::move(run_id), std::move(model_json)});
}

}  // namespace

void add_logging_routes(Router& router, Store& store) {
    const auto add = [&router](Subject subject, std::string pattern, std::string summary,
                               Handler handler) {
        router.add_api(2, {Method::kPost,
                           {Access::kWrite, subject},
                           "/mlflow/runs/" + pattern,
                           Body::kJson,
                           std::move(summary),
                           std::move(handler)});
    };
    constexpr Subject kRun = Subject::kRun;
    constexpr Subject kRunAndModels = Subject::kRunAndModels;
    add(kRunAndModels, "log-metric", "run_id!, key!, value!, timestamp!, step, model_id, dataset_*",
        hot_handler(router, store, parse_log_metric_fast, parse_log_metric));
    add(kRunAndModels, "log-batch", "run_id!, metrics, params, tags",
        hot_handler(router, store, parse_log_batch_fast, parse_log_batch));
    add(kRun, "log-parameter", "run_id!, key!, value", write_handler(store, parse_log_param));
    add(kRun, "set-tag", "run_id!, key!, value", write_handler(store, parse_set_run_tag));
    add(kRun, "delete-tag", "run_id!, key!", write_handler(store, parse_delete_run_tag));
    add(Subject::kRunAndInputs, "log-inputs", "run_id!, datasets, models",
        write_handler(store, parse_log_inputs));
    add(kRunAndModels, "outputs", "run_id!, models", write_handler(store, parse_log_outputs));
    add(kRun, "log-model", "run_id!, model_json! (clients before 3.0)",
        write_handler(store, parse_log_model));
}

}  // namespace tune::tracker
