// One lane per webhook keeps its deliveries in order: only the first of a lane is ever under way. A
// failed one waits at the head of its lane, so its retries delay only its own receiver. Its
// document is deleted when it is finished; a crash before that sends it again with the same id.

#include "tracker/webhooks/deliveries.h"

#include <algorithm>

#include "base/log.h"
#include "base/text/counted.h"
#include "tracker/webhooks/payload.h"
#include "tracker/webhooks/signature.h"

namespace tune::tracker {
namespace {

constexpr int kLongWait_ms = 60'000;
constexpr std::size_t kTestsWaitingMax = 64;

bool is_retried_status(int status) {
    return status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

std::string webhook_of(const std::string& key) {
    return key.substr(0, key.find('/'));
}

}  // namespace

std::string delivery_of(const std::string& key) {
    return key.substr(key.find('/') + 1);
}

PostRequest make_request(const Webhook& webhook, const std::string& delivery_id,
                         const std::string& body, std::int64_t now_ms) {
    const std::string timestamp = std::to_string(now_ms / 1000);
    PostRequest request{webhook.url,
                        {"Content-Type: application/json", "X-MLflow-Delivery-Id: " + delivery_id,
                         "X-MLflow-Timestamp: " + timestamp},
                        body};
    if (webhook.secret.empty()) return request;
    request.headers.push_back("X-MLflow-Signature: " +
                              webhook_signature(webhook.secret, delivery_id, timestamp, body));
    return request;
}

Deliveries::Deliveries(Store& store, const Clock& clock, const WebhookBook& book,
                       DeliveryOptions options)
    : store_(store),
      clock_(clock),
      book_(book),
      options_(std::move(options)),
      jitter_(static_cast<std::minstd_rand::result_type>(clock.now_ms())) {}

/// REQUIRES: mutex_ is held. False: nothing can be sent in this process.
bool Deliveries::ensure_started() {
    if (client_ != nullptr) return true;
    if (has_failed_ || is_stopping_ || !is_started_) return false;
    Result<std::unique_ptr<PostClient>> made = PostClient::make(options_.post);
    if (!made) {
        log_error(made.error().text());
        has_failed_ = true;
        return false;
    }
    client_ = std::move(*made);
    thread_ = std::thread([this] { run(); });
    return true;
}

void Deliveries::start() {
    const std::lock_guard lock(mutex_);
    is_started_ = true;
    if (!lanes_.empty() && ensure_started()) client_->wake();
}

void Deliveries::add(std::string key) {
    const std::lock_guard lock(mutex_);
    lanes_[webhook_of(key)].keys.push_back(std::move(key));
    ++stats_.waiting;
    if (ensure_started()) client_->wake();
}

void Deliveries::test(const Webhook& webhook, const WebhookEvent& event,
                      std::function<void(PostResponse)> done) {
    const std::int64_t now_ms = clock_.now_ms();
    PostRequest request = make_request(webhook, random_uuid(),
                                       delivery_body(event, now_ms, example_data(event)), now_ms);
    PostResponse refusal;
    {
        const std::lock_guard lock(mutex_);
        if (tests_.size() >= kTestsWaitingMax)
            refusal.error = "Too many tests are waiting; try again later.";
        else if (!ensure_started())
            refusal.error = "The server cannot send webhooks; its log says why.";
        else
            tests_.push_back({std::move(request), std::move(done)});
        if (refusal.error.empty()) return client_->wake();
    }
    done(std::move(refusal));
}

DeliveryStats Deliveries::stats() const {
    const std::lock_guard lock(mutex_);
    return stats_;
}

void Deliveries::stop() {
    {
        const std::lock_guard lock(mutex_);
        is_stopping_ = true;
        if (client_ != nullptr) client_->wake();
    }
    if (thread_.joinable()) thread_.join();
}

void Deliveries::run() {
    std::unique_lock lock(mutex_);
    while (!is_stopping_) {
        start_tests(lock);
        start_due(lock);
        const int timeout_ms = wait_ms();
        lock.unlock();
        client_->poll(timeout_ms);
        lock.lock();
    }
}

void Deliveries::start_tests(std::unique_lock<std::mutex>& lock) {
    while (!tests_.empty() && client_->in_flight() < 2 * kTransfersMax) {
        Test test = std::move(tests_.front());
        tests_.pop_front();
        lock.unlock();
        client_->start(std::move(test.request), std::move(test.done));
        lock.lock();
    }
}

/// Goes round the webhooks once, beginning behind the one that was last, so that none waits for
/// another's backlog.
void Deliveries::start_due(std::unique_lock<std::mutex>& lock) {
    const std::size_t count = lanes_.size();
    for (std::size_t i = 0; i < count && stats_.in_flight < kTransfersMax && !is_stopping_; ++i) {
        auto next = lanes_.upper_bound(last_lane_);
        if (next == lanes_.end()) next = lanes_.begin();
        if (next == lanes_.end()) return;
        last_lane_ = next->first;
        Lane& lane = next->second;
        if (lane.is_in_flight || lane.due_ms > clock_.monotonic_ms()) continue;
        lane.is_in_flight = true;
        ++stats_.in_flight;
        send(lock, last_lane_, lane.keys.front());
    }
}

/// Only this thread takes lanes away, so the lane stays while the lock is not held.
void Deliveries::send(std::unique_lock<std::mutex>& lock, const std::string& webhook_id,
                      std::string key) {
    const std::string id = webhook_id;
    lock.unlock();
    const std::optional<Webhook> webhook = book_.find(id);
    Result<std::optional<Document>> document = store_.get_document(kDeliveryCollection, key);
    const bool is_there = document && document->has_value();
    if (webhook && webhook->is_active && is_there) {
        client_->start(
            make_request(*webhook, delivery_of(key), (*document)->json_text, clock_.now_ms()),
            [this, id](const PostResponse& answer) { on_response(id, answer); });
        return lock.lock();
    }
    lock.lock();
    ++stats_.dropped;
    --stats_.in_flight;
    finish(lanes_.find(id));
}

/// REQUIRES: mutex_ is held.
int Deliveries::wait_ms() const {
    std::int64_t wait_ms = kLongWait_ms;
    const std::int64_t now_ms = clock_.monotonic_ms();
    if (stats_.in_flight >= kTransfersMax) return kLongWait_ms;
    for (const auto& [id, lane] : lanes_)
        if (!lane.is_in_flight)
            wait_ms = std::min(wait_ms, std::max<std::int64_t>(0, lane.due_ms - now_ms));
    return static_cast<int>(wait_ms);
}

bool Deliveries::may_retry(const Lane& lane, const PostResponse& answer) const {
    if (answer.is_refused || lane.attempts > options_.retries_max) return false;
    return answer.status == 0 || is_retried_status(answer.status);
}

std::int64_t Deliveries::pause_ms(const Lane& lane, const PostResponse& answer) {
    const std::int64_t step_ms = std::int64_t{options_.backoff_ms} << (lane.attempts - 1);
    const auto spread = static_cast<double>(jitter_()) / static_cast<double>(jitter_.max());
    auto pause = step_ms + static_cast<std::int64_t>(spread * static_cast<double>(step_ms));
    if (answer.retry_after_s) pause = std::max<std::int64_t>(pause, *answer.retry_after_s * 1000LL);
    return std::min<std::int64_t>(pause, options_.backoff_max_ms);
}

void Deliveries::on_response(const std::string& webhook_id, const PostResponse& answer) {
    const std::lock_guard lock(mutex_);
    const auto found = lanes_.find(webhook_id);
    Lane& lane = found->second;
    lane.is_in_flight = false;
    --stats_.in_flight;
    ++lane.attempts;
    if (answer.status != 0 && answer.status < 400) {
        ++stats_.delivered;
        return finish(found);
    }
    if (may_retry(lane, answer)) {
        ++stats_.retried;
        lane.due_ms = clock_.monotonic_ms() + pause_ms(lane, answer);
        return;
    }
    ++(answer.is_refused ? stats_.refused : stats_.failed);
    log_warning("Webhook " + webhook_id + ": delivery " + delivery_of(lane.keys.front()) +
                " was given up after " + counted(lane.attempts, "attempt") + ": " +
                (answer.status != 0 ? "status " + std::to_string(answer.status) : answer.error));
    finish(found);
}

/// The lane's first delivery leaves the queue. REQUIRES: mutex_ is held.
void Deliveries::finish(Lanes::iterator found) {
    Lane& lane = found->second;
    store_.submit(DeleteDocument{kDeliveryCollection, lane.keys.front()}, {});
    lane.keys.pop_front();
    lane.attempts = 0;
    lane.due_ms = 0;
    lane.is_in_flight = false;
    --stats_.waiting;
    if (lane.keys.empty()) lanes_.erase(found);
    if (finished_) finished_();
}

}  // namespace tune::tracker
