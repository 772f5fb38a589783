#pragma once
// Webhooks of a server: who wants to know what, and telling them.
//
//   writer thread:   events of a transaction -> deliveries as documents of the same transaction
//   observer thread: those documents, once they are on disk -> Deliveries -> the receivers
//
// So an answered change has its deliveries on disk, and kill -9 loses none. A delivery that was
// under way at that moment is sent again with the same id: at least once, not exactly once.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "tracker/artifacts/work_pool.h"
#include "tracker/store/store.h"
#include "tracker/store/writer/outbox.h"
#include "tracker/webhooks/deliveries.h"
#include "tracker/webhooks/signature.h"
#include "tracker/webhooks/webhook_book.h"

namespace tune::tracker {

/// Documents of webhooks, by id.
inline constexpr const char* kWebhookCollection = "webhooks";
/// Deliveries that wait for all receivers together; further events are dropped, counted and logged
/// in the log. A day of one event every 9 s to a receiver that is down.
inline constexpr std::size_t kDeliveriesWaitingMax = 10'000;
/// A larger body is not sent: nothing that MLflow's limits allow comes near it.
inline constexpr std::size_t kDeliveryBytesMax = 1u << 20;

/// Threads that check and store webhooks. Looking up a name may take seconds.
inline constexpr int kPoolThreads = 4;

/// Fields that are given, of a new or changed webhook.
struct WebhookFields {
    std::optional<std::string> name = {};
    std::optional<std::string> url = {};
    std::optional<std::string> description = {};
    std::optional<std::string> secret = {};
    std::optional<std::vector<WebhookEvent>> events = {};
    std::optional<bool> is_active = {};
    /// The caller does not know of events of runs: those of the webhook stay.
    bool keeps_run_events = false;
};

/// Thread-safe.
class WebhookService final : public CommitObserver, public Outbox {
public:
    /// Reads what the store holds, joins it as observer and outbox, and resumes the deliveries
    /// that an earlier process did not finish. REQUIRES: no command has been submitted yet. Errors:
    /// those of the store.
    [[nodiscard]] static Result<std::unique_ptr<WebhookService>> open(Store& store,
                                                                      const Clock& clock,
                                                                      DeliveryOptions options);

    [[nodiscard]] const WebhookBook& book() const { return book_; }

    // Blocking (name look-up, commit); never on a network, writer or observer thread.

    /// Errors: kInvalidParameterValue; kResourceExhausted beyond kWebhooksMax; the store's.
    [[nodiscard]] Result<Webhook> create(WebhookFields fields);
    /// Errors: also kResourceDoesNotExist "Webhook with ID x not found.".
    [[nodiscard]] Result<Webhook> update(const std::string& webhook_id, WebhookFields fields);
    /// Its waiting deliveries are dropped.
    [[nodiscard]] Result<void> remove(const std::string& webhook_id);

    /// Checks the URL, sends an example of `event`, calls `done` once.
    void test(const Webhook& webhook, const WebhookEvent& event,
              std::function<void(PostResponse)> done);

    struct Stats {
        DeliveryStats deliveries;
        std::uint64_t overflowed = 0;  ///< events that found kDeliveriesWaitingMax waiting
        std::size_t webhooks = 0;
    };
    [[nodiscard]] Stats stats() const;

    /// Runs a call of the blocking ones above on a thread that may wait. At most one per request.
    void post(std::function<void()> job) { pool_.post(std::move(job)); }

    /// Begins to send what waits and what comes.
    void start() { deliveries_.start(); }
    /// Ends the sending. Idempotent; before the store is destroyed.
    void stop() { deliveries_.stop(); }

    void add_documents(std::span<const Event> events, std::vector<Document>& documents) override;
    void forget_documents() override;
    void on_commit(const Commit& commit) override;

private:
    WebhookService(Store& store, const Clock& clock, DeliveryOptions options);
    [[nodiscard]] Result<void> load();
    [[nodiscard]] Result<void> check(const WebhookFields& fields, bool is_new) const;
    void add_deliveries(const WebhookEvent& event, const std::function<std::string()>& data,
                        std::vector<Document>& documents);

    Store& store_;
    const Clock& clock_;
    const TargetPolicy policy_;
    WebhookBook book_;
    std::mutex changes_;  // one change of a webhook at a time
    std::atomic<std::int64_t> waiting_{0};
    std::atomic<std::uint64_t> overflowed_{0};
    OrderedUuids delivery_ids_;          // writer thread only
    std::int64_t made_last_ = 0;         // writer thread only
    std::int64_t overflow_said_ms_ = 0;  // writer thread only
    Deliveries deliveries_;
    WorkPool pool_{kPoolThreads};
};

}  // namespace tune::tracker
