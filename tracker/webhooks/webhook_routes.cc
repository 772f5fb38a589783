// One set of functions serves both faces; a face decides whether events of runs are read and shown.
// Calls that look up a name wait on a thread of the service, never on a network thread.

#include "tracker/webhooks/webhook_routes.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tracker/api/http/handlers.h"
#include "tracker/api/http/message.h"
#include "tracker/search/page_token.h"

namespace tune::tracker {
namespace {

constexpr std::int64_t kPageDefault = 100;
constexpr std::int64_t kPageMax = 1000;
constexpr int kRunEntity = 100;

/// One of the two faces: MLflow's, or ours with events of runs.
struct Face {
    WebhookService& service;
    bool with_runs = false;

    [[nodiscard]] bool shows(const Webhook& webhook) const {
        return with_runs || webhook.has_mlflow_events();
    }
    [[nodiscard]] std::string answer(const Webhook& webhook) const {
        return to_text({{"webhook", webhook_response(webhook, with_runs)}});
    }
    [[nodiscard]] Result<Webhook> find(const Request& request) const {
        const std::string& id = request.parameter("webhook_id");
        std::optional<Webhook> webhook = service.book().find(id);
        if (webhook && shows(*webhook)) return std::move(*webhook);
        return Error{Code::kResourceDoesNotExist, "Webhook with ID " + id + " not found."};
    }
};

Result<WebhookEvent> read_event(const Message& message, bool with_runs) {
    TUNE_TRY(entity, message.enumerator("entity", entity_names()));
    TUNE_TRY(action, message.enumerator("action", action_names()));
    if (entity == kRunEntity && !with_runs)
        return Error{Code::kInvalidParameterValue,
                     "Events of runs are not MLflow's; use /api/2.0/tune/webhooks for them."};
    if (!entity || !action)
        return Error{Code::kInvalidParameterValue,
                     "A webhook event needs an entity and an action."};
    const WebhookEvent event{*entity, *action};
    TUNE_TRY_VOID(check_event(event));
    return event;
}

Result<std::optional<std::vector<WebhookEvent>>> read_events(const Message& message,
                                                             bool with_runs) {
    TUNE_TRY(is_there, message.has("events"));
    if (!is_there) return std::optional<std::vector<WebhookEvent>>();
    TUNE_TRY(items, message.messages("events"));
    std::vector<WebhookEvent> events;
    for (const Message& item : items) {
        TUNE_TRY(event, read_event(item, with_runs));
        events.push_back(event);
    }
    return std::optional<std::vector<WebhookEvent>>(std::move(events));
}

Result<WebhookFields> read_fields(const Message& message, const Face& face) {
    WebhookFields fields;
    TUNE_TRY(name, message.optional_text("name"));
    TUNE_TRY(url, message.optional_text("url"));
    TUNE_TRY(description, message.optional_text("description"));
    TUNE_TRY(secret, message.optional_text("secret"));
    TUNE_TRY(status, message.enumerator("status", status_names()));
    TUNE_TRY(events, read_events(message, face.with_runs));
    fields.name = std::move(name);
    fields.url = std::move(url);
    fields.description = std::move(description);
    fields.secret = std::move(secret);
    fields.events = std::move(events);
    if (status) fields.is_active = *status == 1;
    fields.keeps_run_events = !face.with_runs;
    return fields;
}

Result<WebhookFields> read_new(const Request& request, const Face& face) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(name, message.required_text("name"));
    TUNE_TRY(url, message.required_text("url"));
    TUNE_TRY(has_events, message.has("events"));
    if (!has_events) {
        // The sentence for a missing value.
        TUNE_TRY(unused, message.required_text("events"));
        static_cast<void>(unused);
    }
    return read_fields(message, face);
}

/// Of a changed webhook empty texts and lists are left alone, except what "" clears.
Result<WebhookFields> read_changes(const Request& request, const Face& face) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(fields, read_fields(message, face));
    if (fields.name && fields.name->empty()) fields.name.reset();
    if (fields.url && fields.url->empty()) fields.url.reset();
    if (fields.events && fields.events->empty()) fields.events.reset();
    return fields;
}

Result<std::string> create(const Face& face, const Request& request) {
    TUNE_TRY(fields, read_new(request, face));
    TUNE_TRY(webhook, face.service.create(std::move(fields)));
    return face.answer(webhook);
}

Result<std::string> update(const Face& face, const Request& request) {
    TUNE_TRY(fields, read_changes(request, face));
    TUNE_TRY(found, face.find(request));
    TUNE_TRY(webhook, face.service.update(found.webhook_id, std::move(fields)));
    return face.answer(webhook);
}

Result<std::string> remove(const Face& face, const Request& request) {
    TUNE_TRY(found, face.find(request));
    TUNE_TRY_VOID(face.service.remove(found.webhook_id));
    return std::string("{}");
}

Result<std::string> get(const Face& face, const Request& request) {
    TUNE_TRY(webhook, face.find(request));
    return face.answer(webhook);
}

Result<std::string> list(const Face& face, const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(wanted, message.integer("max_results"));
    TUNE_TRY(token, message.text("page_token"));
    const std::int64_t max_results = wanted.value_or(0) == 0 ? kPageDefault : *wanted;
    if (max_results < 1 || max_results > kPageMax)
        return Error{Code::kInvalidParameterValue, "max_results must be between 1 and 1000."};
    const std::uint64_t fingerprint =
        search::query_fingerprint(face.with_runs ? "tune/webhooks" : "mlflow/webhooks");
    std::vector<Webhook> webhooks = face.service.book().all();
    std::erase_if(webhooks, [&](const Webhook& one) { return !face.shows(one); });
    if (!token.empty()) {
        TUNE_TRY(last, search::read_page_token(fingerprint, token, 2));
        const auto* time = std::get_if<std::int64_t>(&last[0]);
        const auto* id = std::get_if<std::string>(&last[1]);
        if (time == nullptr || id == nullptr)
            return Error{Code::kInvalidParameterValue, "Invalid page token, it is damaged."};
        std::erase_if(webhooks, [&](const Webhook& one) {
            return std::pair(one.creation_ms, one.webhook_id) >= std::pair(*time, *id);
        });
    }
    Json answer = Json::object();
    if (webhooks.size() > static_cast<std::size_t>(max_results)) {
        webhooks.resize(static_cast<std::size_t>(max_results));
        answer["next_page_token"] = search::make_page_token(
            fingerprint, {webhooks.back().creation_ms, webhooks.back().webhook_id});
    }
    for (const Webhook& webhook : webhooks)
        answer["webhooks"].push_back(webhook_response(webhook, face.with_runs));
    return to_text(answer);
}

Json result_of(const PostResponse& answer) {
    Json result = {{"success", answer.status != 0 && answer.status < 400}};
    if (answer.status != 0) {
        result["response_status"] = answer.status;
        result["response_body"] = answer.body;
    } else {
        result["error_message"] = "Failed to test webhook: " + answer.error;
    }
    return {{"result", std::move(result)}};
}

Result<WebhookEvent> tested_event(const Face& face, const Request& request,
                                  const Webhook& webhook) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(is_given, message.has("event"));
    if (is_given) {
        TUNE_TRY(event, message.message("event"));
        return read_event(event, face.with_runs);
    }
    const auto first = std::find_if(
        webhook.events.begin(), webhook.events.end(),
        [&](const WebhookEvent& event) { return face.with_runs || event.is_of_mlflow(); });
    return *first;  // face.find() shows only webhooks that have one
}

void test(const Face& face, const Request& request, const Responder& respond) {
    const Result<Webhook> webhook = face.find(request);
    if (!webhook) return respond(error_response(webhook.error()));
    const Result<WebhookEvent> event = tested_event(face, request, *webhook);
    if (!event) return respond(error_response(event.error()));
    face.service.test(*webhook, *event, [respond](const PostResponse& answer) {
        respond(json_response(result_of(answer)));
    });
}

using Call = Result<std::string> (*)(const Face&, const Request&);

/// For calls that wait: for a name server, for the commit.
Handler waiting_handler(Face face, Call call) {
    return [face, call](const std::shared_ptr<Request>& request, const Responder& respond) {
        face.service.post(
            [face, call, request, respond] { respond(response_of(call(face, *request))); });
    };
}

Handler test_handler(Face face) {
    return [face](const std::shared_ptr<Request>& request, const Responder& respond) {
        face.service.post([face, request, respond] { test(face, *request, respond); });
    };
}

void add_face(Router& router, Store& store, const std::string& path, Face face) {
    const std::string one = path + "/{webhook_id}";
    const auto read = [&store, face](Call call) {
        return read_handler(store,
                            [face, call](const Request& request) { return call(face, request); });
    };
    const std::string known = face.with_runs ? ", also of runs" : "";
    router.add_api(2, {Method::kPost,
                       {Access::kWrite, Subject::kServer},
                       path,
                       Body::kJson,
                       "Create a webhook: name!, url!, events! [{entity, action}]" + known +
                           ", description, secret, status",
                       waiting_handler(face, create)});
    router.add_api(2, {Method::kGet,
                       {Access::kRead, Subject::kServer},
                       path,
                       Body::kNone,
                       "List webhooks" + known + ": max_results, page_token",
                       read(list)});
    router.add_api(2, {Method::kGet,
                       {Access::kRead, Subject::kServer},
                       one,
                       Body::kNone,
                       "One webhook" + known,
                       read(get)});
    router.add_api(2, {Method::kPatch,
                       {Access::kWrite, Subject::kServer},
                       one,
                       Body::kJson,
                       "Change the given fields of a webhook",
                       waiting_handler(face, update)});
    router.add_api(2, {Method::kDelete,
                       {Access::kWrite, Subject::kServer},
                       one,
                       Body::kNone,
                       "Delete a webhook and its waiting deliveries",
                       waiting_handler(face, remove)});
    router.add_api(2, {Method::kPost,
                       {Access::kWrite, Subject::kServer},
                       one + "/test",
                       Body::kJson,
                       "Send an example: event {entity, action}",
                       test_handler(face)});
}

}  // namespace

void write_webhook_metrics(PrometheusText& out, const WebhookService& service) {
    const WebhookService::Stats now = service.stats();
    const auto number = [](auto value) { return static_cast<double>(value); };
    out.single("tune_webhooks", "gauge", "Registered webhooks.", number(now.webhooks));
    out.single("tune_webhook_queue_deliveries", "gauge", "Deliveries that are not finished.",
               number(now.deliveries.waiting));
    out.single("tune_webhook_in_flight", "gauge", "Deliveries being sent.",
               number(now.deliveries.in_flight));
    out.single("tune_webhook_retries_total", "counter", "Attempts that will be repeated.",
               number(now.deliveries.retried));
    constexpr const char* kName = "tune_webhook_deliveries_total";
    out.family(kName, "counter", "Finished deliveries by how they ended.");
    out.sample(kName, {{"outcome", "delivered"}}, number(now.deliveries.delivered));
    out.sample(kName, {{"outcome", "failed"}}, number(now.deliveries.failed));
    out.sample(kName, {{"outcome", "refused"}}, number(now.deliveries.refused));
    out.sample(kName, {{"outcome", "dropped"}}, number(now.deliveries.dropped));
    out.sample(kName, {{"outcome", "overflowed"}}, number(now.overflowed));
}

void add_webhook_routes(Router& router, Store& store, WebhookService& service) {
    add_face(router, store, "/mlflow/webhooks", {service, false});
    add_face(router, store, "/tune/webhooks", {service, true});
}

}  // namespace tune::tracker
