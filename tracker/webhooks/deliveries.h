#pragma once
// The queue of deliveries. Each is a document of the store, written in the transaction of the event
// that it reports (service.h), and deleted when it was delivered or given up; so what was not
// finished is sent after a restart, with the same id.

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "base/clock.h"
#include "tracker/store/store.h"
#include "tracker/webhooks/post_client.h"
#include "tracker/webhooks/webhook_book.h"

namespace tune::tracker {

/// Key "<webhook id>/<delivery id>", text: the body that is sent.
inline constexpr const char* kDeliveryCollection = "webhook-deliveries";
/// The delivery's id in such a key.
[[nodiscard]] std::string delivery_of(const std::string& key);

/// Transfers at one time (MLflow: 10 threads). A slow receiver holds one of them, because the
/// deliveries of one webhook go one after the other.
inline constexpr std::size_t kTransfersMax = 16;

struct DeliveryOptions {
    PostOptions post = {};
    /// After the first attempt; MLflow's MLFLOW_WEBHOOK_REQUEST_MAX_RETRIES.
    int retries_max = 3;
    /// The n-th retry waits for this times 2^(n-1), and up to the same again at random.
    int backoff_ms = 1000;
    /// Longest wait that a Retry-After can ask for.
    int backoff_max_ms = 60'000;
};

/// Since the start; `waiting` and `in_flight` are of now.
struct DeliveryStats {
    std::uint64_t waiting = 0;
    std::uint64_t in_flight = 0;
    std::uint64_t delivered = 0;  ///< answered with a status below 400
    std::uint64_t failed = 0;     ///< given up
    std::uint64_t refused = 0;    ///< the address is not allowed
    std::uint64_t retried = 0;
    std::uint64_t dropped = 0;  ///< the webhook was deleted or disabled meanwhile
};

/// Thread-safe. One thread of its own, from the first delivery on. Memory: about 150 bytes a
/// waiting delivery (their number is bounded by the service), and kTransfersMax transfers.
class Deliveries {
public:
    Deliveries(Store& store, const Clock& clock, const WebhookBook& book, DeliveryOptions options);
    ~Deliveries() { stop(); }
    Deliveries(const Deliveries&) = delete;
    Deliveries& operator=(const Deliveries&) = delete;

    /// Begins to send; until then deliveries only wait. A program that only looks into a folder
    /// never calls it.
    void start();

    /// Queues the delivery whose document has this key.
    void add(std::string key);

    /// Sends `event`'s example once, without retries, beside the queue. `done` is called once, on
    /// any thread.
    void test(const Webhook& webhook, const WebhookEvent& event,
              std::function<void(PostResponse)> done);

    [[nodiscard]] DeliveryStats stats() const;
    /// Called after each delivery that left the queue; set before the first add().
    void on_finished(std::function<void()> call) { finished_ = std::move(call); }

    /// Breaks off what is under way; it stays in the store. Idempotent.
    void stop();

private:
    /// The deliveries of one webhook, oldest first; the first is the one that is tried.
    struct Lane {
        std::deque<std::string> keys;
        int attempts = 0;
        bool is_in_flight = false;
        std::int64_t due_ms = 0;
    };
    using Lanes = std::map<std::string, Lane, std::less<>>;
    struct Test {
        PostRequest request;
        std::function<void(PostResponse)> done;
    };

    [[nodiscard]] bool ensure_started();
    void run();
    void start_tests(std::unique_lock<std::mutex>& lock);
    void start_due(std::unique_lock<std::mutex>& lock);
    void send(std::unique_lock<std::mutex>& lock, const std::string& webhook_id, std::string key);
    [[nodiscard]] int wait_ms() const;
    void on_response(const std::string& webhook_id, const PostResponse& answer);
    [[nodiscard]] bool may_retry(const Lane& lane, const PostResponse& answer) const;
    [[nodiscard]] std::int64_t pause_ms(const Lane& lane, const PostResponse& answer);
    void finish(Lanes::iterator lane);

    Store& store_;
    const Clock& clock_;
    const WebhookBook& book_;
    const DeliveryOptions options_;
    std::function<void()> finished_;
    mutable std::mutex mutex_;
    std::unique_ptr<PostClient> client_;  // made under mutex_, then used by thread_ and wake()
    Lanes lanes_;                         // guarded by mutex_
    std::string last_lane_;               // guarded by mutex_: whose turn was last
    std::deque<Test> tests_;              // guarded by mutex_
    DeliveryStats stats_;                 // guarded by mutex_
    std::minstd_rand jitter_;             // guarded by mutex_
    bool is_started_ = false;             // guarded by mutex_
    bool is_stopping_ = false;            // guarded by mutex_
    bool has_failed_ = false;             // guarded by mutex_: libcurl cannot be loaded
    std::thread thread_;
};

/// The request of one attempt, signed for now.
[[nodiscard]] PostRequest make_request(const Webhook& webhook, const std::string& delivery_id,
                                       const std::string& body, std::int64_t now_ms);

}  // namespace tune::tracker
