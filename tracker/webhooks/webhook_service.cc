// Deliveries are written in the event's own transaction (outbox), so an answered change has its
// deliveries on disk and a rolled-back one has none. Their keys are remembered until the observer
// sees the commit; forget_documents() drops them when there was none.

#include "tracker/webhooks/webhook_service.h"

#include <algorithm>
#include <limits>

#include "base/log.h"
#include "tracker/store/reads/read_documents.h"
#include "tracker/webhooks/payload.h"
#include "tracker/webhooks/target_url.h"

namespace tune::tracker {
namespace {

constexpr std::int64_t kOverflowSaid_ms = 60'000;

Error no_webhook(const std::string& webhook_id) {
    return {Code::kResourceDoesNotExist, "Webhook with ID " + webhook_id + " not found."};
}

Error too_long(const char* what, std::size_t bytes, std::size_t limit) {
    return {Code::kInvalidParameterValue, std::string("The ") + what + " of a webhook has " +
                                              std::to_string(bytes) + " bytes; the limit is " +
                                              std::to_string(limit) + "."};
}

void apply(Webhook& webhook, WebhookFields& fields) {
    if (fields.name) webhook.name = std::move(*fields.name);
    if (fields.url) webhook.url = std::move(*fields.url);
    if (fields.description) webhook.description = std::move(*fields.description);
    if (fields.secret) webhook.secret = std::move(*fields.secret);
    if (fields.is_active) webhook.is_active = *fields.is_active;
    if (!fields.events) return;
    std::vector<WebhookEvent> events = std::move(*fields.events);
    if (fields.keeps_run_events)
        std::copy_if(webhook.events.begin(), webhook.events.end(), std::back_inserter(events),
                     [](const WebhookEvent& event) { return !event.is_of_mlflow(); });
    sort_events(events);
    webhook.events = std::move(events);
}

}  // namespace

WebhookService::WebhookService(Store& store, const Clock& clock, DeliveryOptions options)
    : store_(store),
      clock_(clock),
      policy_(options.post.policy),
      deliveries_(store, clock, book_, std::move(options)) {}

Result<std::unique_ptr<WebhookService>> WebhookService::open(Store& store, const Clock& clock,
                                                             DeliveryOptions options) {
    std::unique_ptr<WebhookService> service(new WebhookService(store, clock, std::move(options)));
    service->deliveries_.on_finished([raw = service.get()] { raw->waiting_.fetch_sub(1); });
    TUNE_TRY_VOID(service->load());
    store.set_outbox(service.get());
    store.add_observer(service.get());
    return service;
}

Result<void> WebhookService::load() {
    TUNE_TRY(documents, store_.list_documents(kWebhookCollection));
    for (const Document& document : documents) {
        TUNE_TRY(webhook, webhook_from_document(document.json_text));
        book_.put(std::move(webhook));
    }
    TUNE_TRY(keys, store_.snapshot([](sqlite::Connection& connection) {
        return list_document_keys(connection, kDeliveryCollection);
    }));
    waiting_.store(static_cast<std::int64_t>(keys.size()));
    for (std::string& key : keys) {
        delivery_ids_.begin_behind(delivery_of(key));
        deliveries_.add(std::move(key));
    }
    return {};
}

Result<void> WebhookService::check(const WebhookFields& fields, bool is_new) const {
    if (fields.name) TUNE_TRY_VOID(check_webhook_name(*fields.name));
    if (fields.url) TUNE_TRY_VOID(check_target(*fields.url, policy_));
    if (is_new && (!fields.events || fields.events->empty()))
        return Error{Code::kInvalidParameterValue,
                     "Webhook events must be a non-empty list of WebhookEvent objects: []."};
    if (fields.description && fields.description->size() > kDescriptionBytesMax)
        return too_long("description", fields.description->size(), kDescriptionBytesMax);
    if (fields.secret && fields.secret->size() > kSecretBytesMax)
        return too_long("secret", fields.secret->size(), kSecretBytesMax);
    return {};
}

Result<Webhook> WebhookService::create(WebhookFields fields) {
    TUNE_TRY_VOID(check(fields, true));
    const std::lock_guard lock(changes_);
    if (book_.size() >= kWebhooksMax)
        return Error{Code::kResourceExhausted, "The server has " + std::to_string(kWebhooksMax) +
                                                   " webhooks, which is its limit; delete one."};
    Webhook webhook{.webhook_id = random_uuid(), .name = "", .url = "", .events = {}};
    webhook.creation_ms = webhook.last_updated_ms = clock_.now_ms();
    apply(webhook, fields);
    TUNE_TRY_VOID(store_.execute(
        PutDocument{kWebhookCollection, webhook.webhook_id, webhook_document(webhook)}));
    book_.put(webhook);
    return webhook;
}

Result<Webhook> WebhookService::update(const std::string& webhook_id, WebhookFields fields) {
    if (!book_.find(webhook_id)) return no_webhook(webhook_id);
    TUNE_TRY_VOID(check(fields, false));
    const std::lock_guard lock(changes_);
    std::optional<Webhook> webhook = book_.find(webhook_id);
    if (!webhook) return no_webhook(webhook_id);
    apply(*webhook, fields);
    webhook->last_updated_ms = clock_.now_ms();
    TUNE_TRY_VOID(
        store_.execute(PutDocument{kWebhookCollection, webhook_id, webhook_document(*webhook)}));
    book_.put(*webhook);
    return std::move(*webhook);
}

Result<void> WebhookService::remove(const std::string& webhook_id) {
    const std::lock_guard lock(changes_);
    if (!book_.find(webhook_id)) return no_webhook(webhook_id);
    TUNE_TRY_VOID(store_.execute(DeleteDocument{kWebhookCollection, webhook_id}));
    book_.remove(webhook_id);
    return {};
}

void WebhookService::test(const Webhook& webhook, const WebhookEvent& event,
                          std::function<void(PostResponse)> done) {
    const Result<void> checked = check_target(webhook.url, policy_);
    if (checked) return deliveries_.test(webhook, event, std::move(done));
    PostResponse answer;
    answer.error = checked.error().message;
    answer.is_refused = true;
    done(std::move(answer));
}

WebhookService::Stats WebhookService::stats() const {
    return {deliveries_.stats(), overflowed_.load(), book_.size()};
}

// --- writer thread -------------------------------------------------------------------------------

void WebhookService::add_documents(std::span<const Event> events,
                                   std::vector<Document>& documents) {
    made_last_ = 0;
    if (book_.is_empty()) return;
    for (const Event& event : events)
        for (const OutgoingEvent& outgoing : outgoing_events(event))
            add_deliveries(outgoing.event, outgoing.data, documents);
    made_last_ = static_cast<std::int64_t>(documents.size());
    waiting_.fetch_add(made_last_);
}

void WebhookService::add_deliveries(const WebhookEvent& event,
                                    const std::function<std::string()>& data,
                                    std::vector<Document>& documents) {
    const std::vector<std::string> webhooks = book_.wanting(event);
    if (webhooks.empty()) return;
    const std::int64_t now_ms = clock_.now_ms();
    const std::string body = delivery_body(event, now_ms, data());
    const auto room = static_cast<std::int64_t>(kDeliveriesWaitingMax) - waiting_.load() -
                      static_cast<std::int64_t>(documents.size());
    const bool fits = body.size() <= kDeliveryBytesMax;
    std::size_t taken = 0;
    for (const std::string& id : webhooks) {
        if (!fits || static_cast<std::int64_t>(taken) >= room) break;
        documents.push_back({kDeliveryCollection, id + "/" + delivery_ids_.next(now_ms), body});
        ++taken;
    }
    if (taken == webhooks.size()) return;
    overflowed_.fetch_add(webhooks.size() - taken);
    if (now_ms - overflow_said_ms_ < kOverflowSaid_ms) return;
    overflow_said_ms_ = now_ms;
    log_warning(fits ? "Webhooks: " + std::to_string(kDeliveriesWaitingMax) +
                           " deliveries are waiting; further events are dropped."
                     : "Webhooks: an event of " + std::to_string(body.size()) +
                           " bytes was dropped; the limit is " + std::to_string(kDeliveryBytesMax) +
                           ".");
}

void WebhookService::forget_documents() {
    waiting_.fetch_sub(made_last_);
    made_last_ = 0;
}

// --- observer thread -----------------------------------------------------------------------------

void WebhookService::on_commit(const Commit& commit) {
    for (const Event& event : commit.events)
        if (const auto* put = std::get_if<DocumentPut>(&event);
            put != nullptr && put->document.collection == kDeliveryCollection)
            deliveries_.add(put->document.key);
}

}  // namespace tune::tracker
