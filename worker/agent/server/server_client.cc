// Two loops, each with one request in flight. The lease loop asks for as many trials as slots are
// free and repeats a request under the same id until it is answered, so a lost answer loses no
// trial. An answer without trials that comes early is followed by a pause, as an error is. The
// heartbeat loop names the attempts that are held; a directive or a lost attempt in the
// answer goes to the agent once. Both wait on a condition variable between calls, and stop()
// cancels what hangs.

#include "worker/agent/server/server_client.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/text/percent.h"
#include "worker/agent/server/sender.h"

namespace tune::worker {
namespace {

constexpr std::int64_t kLeaseWait_ms = kLongPollMax_ms - 5'000;
constexpr int kAnswerSlack_ms = 15'000;  // beyond the wait that was asked for
constexpr int kRegisterTimeout_ms = 15'000;
constexpr int kGoodbyeTimeout_ms = 2'000;
/// The server repeats a directive until its attempt has ended; without this pause the heartbeats
/// would spin during a trial's grace time.
constexpr int kRepeatPause_ms = 250;
constexpr const char* kRegisterPath = "/api/2.0/tune/agents/register";

bool is_unknown_agent(const Error& error) {
    return error.code == Code::kResourceDoesNotExist;
}

}  // namespace

Result<std::unique_ptr<ServerClient>> ServerClient::create(const std::string& server_url,
                                                           tuner::RegisterRequest registration,
                                                           int free_slots, LinkEvents events) {
    Clients clients;
    for (auto* client : {&clients.lease, &clients.heartbeat, &clients.change, &clients.goodbye}) {
        TUNE_TRY(made, connect_to(server_url));
        *client = std::move(made);
    }
    return std::unique_ptr<ServerClient>(new ServerClient(
        std::move(clients), std::move(registration), free_slots, std::move(events)));
}

ServerClient::ServerClient(Clients clients, tuner::RegisterRequest registration, int free_slots,
                           LinkEvents events)
    : events_(std::move(events)),
      clients_(std::move(clients)),
      registration_(std::move(registration)),
      free_slots_(free_slots) {}

ServerClient::~ServerClient() {
    stop(false);
}

void ServerClient::start() {
    lease_thread_ = std::thread([this] { lease_loop(); });
    heartbeat_thread_ = std::thread([this] { heartbeat_loop(); });
    change_thread_ = std::thread([this] { change_loop(); });
}

void ServerClient::set_running(std::vector<tuner::AttemptId> running) {
    const std::lock_guard lock(mutex_);
    registration_.running = std::move(running);
}

void ServerClient::free_slot() {
    const std::lock_guard lock(mutex_);
    ++free_slots_;
    changed_.notify_all();
}

void ServerClient::set_pool_room(int attempts) {
    const std::lock_guard lock(mutex_);
    if (pool_room_ == attempts) return;
    pool_room_ = attempts;
    changed_.notify_all();
}

void ServerClient::take_slot() {
    const std::lock_guard lock(mutex_);
    --free_slots_;
}

void ServerClient::set_gpus(std::vector<std::string> gpus, int fewer_slots) {
    const std::lock_guard lock(mutex_);
    registration_.gpus = std::move(gpus);
    std::erase_if(registration_.devices, [this](const tuner::GpuFacts& device) {
        const std::vector<std::string>& left = registration_.gpus;
        return std::find(left.begin(), left.end(), device.uuid) == left.end();
    });
    registration_.slots = std::max(0, registration_.slots - fewer_slots);
    free_slots_ -= fewer_slots;
    has_changed_ = true;
    changed_.notify_all();
}

/// Both other threads may hang in a long-poll while the server has to hear at once what this
/// machine has not any more.
void ServerClient::change_loop() {
    while (true) {
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return stopping_ || (has_changed_ && registered_); });
            if (stopping_) return;
            has_changed_ = false;
        }
        if (!register_once(*clients_.change)) register_again();
    }
}

void ServerClient::stop_leasing() {
    {
        const std::lock_guard lock(mutex_);
        leasing_ = false;
        changed_.notify_all();
    }
    clients_.lease->cancel();
}

void ServerClient::register_again() {
    const std::lock_guard lock(mutex_);
    registered_ = false;
    changed_.notify_all();
}

bool ServerClient::draining() const {
    const std::lock_guard lock(mutex_);
    return server_draining_;
}

void ServerClient::stop(bool say_goodbye) {
    bool was_registered = false;
    tuner::RegisterRequest goodbye;
    {
        const std::lock_guard lock(mutex_);
        if (stopping_) return;
        stopping_ = true;
        was_registered = registered_;
        goodbye = registration_;
        changed_.notify_all();
    }
    clients_.lease->cancel();
    clients_.heartbeat->cancel();
    clients_.change->cancel();
    for (std::thread* thread : {&lease_thread_, &heartbeat_thread_, &change_thread_})
        if (thread->joinable()) thread->join();
    if (!say_goodbye || !was_registered) return;
    goodbye.slots = 0;
    // A server that is gone already cannot hold a lease for us either.
    const Result<Json> ignored =
        clients_.goodbye->post(kRegisterPath, tuner::to_json(goodbye), kGoodbyeTimeout_ms);
    if (!ignored) log_debug("the server could not be informed that the agent left");
}

std::string ServerClient::path(const char* call) const {
    return "/api/2.0/tune/agents/" + percent_encode(registration_.agent_id, false) + "/" + call;
}

bool ServerClient::pause(int delay_ms) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(delay_ms), [this] { return stopping_; });
    return !stopping_;
}

void ServerClient::failed(const Error& error, Backoff& backoff) {
    if (error.code == Code::kCancelled) return;
    if (is_unknown_agent(error)) {
        register_again();
    } else {
        events_.contact(error.text());
    }
    pause(backoff.next_ms());
}

void ServerClient::lease_loop() {
    while (true) {
        int free_slots = 0;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] {
                return stopping_ || !leasing_ ||
                       (registered_ && !server_draining_ && (free_slots_ > 0 || pool_room_ > 0));
            });
            if (stopping_ || !leasing_) return;
            // The server knows what is taken; 0 would keep a slot empty that becomes free
            // meanwhile.
            free_slots = std::max(free_slots_, 1);
        }
        ask_for_leases(free_slots);
    }
}

void ServerClient::ask_for_leases(int free_slots) {
    const tuner::LeaseRequest request{.request_id = random_hex(16),
                                      .free_slots = free_slots,
                                      .wait_ms = kLeaseWait_ms,
                                      .port = events_.gang_port ? events_.gang_port() : 0,
                                      .wants_tokens = trials_take_tokens()};
    const Json body = tuner::to_json(request);
    const std::string where = path("lease");
    while (true) {
        const std::int64_t begin_ms = SystemClock().monotonic_ms();
        Result<Json> answer =
            clients_.lease->post(where, body, static_cast<int>(kLeaseWait_ms) + kAnswerSlack_ms);
        Result<tuner::LeaseReply> reply = answer ? tuner::from_json<tuner::LeaseReply>(*answer)
                                                 : Result<tuner::LeaseReply>(answer.error());
        if (!reply) {
            failed(reply.error(), lease_backoff_);
            const std::lock_guard lock(mutex_);
            if (stopping_ || !leasing_ || !registered_) return;
            continue;  // the same request id: leases that were given already come again
        }
        events_.contact("");
        // A server that has nothing, and does not wait until it has, is not asked in a loop.
        const bool early = SystemClock().monotonic_ms() - begin_ms < kLeaseWait_ms / 2;
        if (reply->leases.empty() && early) {
            pause(lease_backoff_.next_ms());
            return;
        }
        lease_backoff_.reset();
        {
            const std::lock_guard lock(mutex_);
            free_slots_ -= static_cast<int>(reply->leases.size());
        }
        const bool has_gang =
            std::any_of(reply->leases.begin(), reply->leases.end(),
                        [](const tuner::Lease& lease) { return lease.gang.has_value(); });
        // Before the next lease is asked for, which must not name it again.
        if (has_gang && events_.gang_port_given) events_.gang_port_given(request.port);
        events_.leased(std::move(reply->leases));
        return;
    }
}

void ServerClient::heartbeat_loop() {
    while (true) {
        bool registered = false;
        {
            const std::lock_guard lock(mutex_);
            if (stopping_) return;
            registered = registered_;
        }
        if (registered)
            heartbeat_once();
        else
            register_once(*clients_.heartbeat);
    }
}

bool ServerClient::register_once(tracker::Client& client) {
    Json body;
    {
        const std::lock_guard lock(mutex_);
        body = tuner::to_json(registration_);
    }
    Result<Json> answer = client.post(kRegisterPath, body, kRegisterTimeout_ms);
    Result<tuner::RegisterReply> reply = answer ? tuner::from_json<tuner::RegisterReply>(*answer)
                                                : Result<tuner::RegisterReply>(answer.error());
    const bool is_news_of_change = &client == clients_.change.get();
    if (!reply) {
        if (!is_news_of_change) failed(reply.error(), heartbeat_backoff_);
        return false;
    }
    if (!is_news_of_change) heartbeat_backoff_.reset();
    events_.contact("");
    events_.registered(*reply);
    const std::lock_guard lock(mutex_);
    heartbeat_ms_ = std::clamp<std::int64_t>(reply->heartbeat_ms, 100, kLongPollMax_ms);
    registered_ = true;
    server_draining_ = false;
    changed_.notify_all();
    return true;
}

bool ServerClient::brings_news(const tuner::HeartbeatReply& reply) {
    std::set<std::string> current;
    bool news = false;
    const auto look = [&](std::string key) {
        news = !known_directives_.contains(key) || news;
        current.insert(std::move(key));
    };
    for (const tuner::Directive& item : reply.directives)
        look(item.run_id + "/" + std::to_string(item.attempt) + "/" +
             std::string(tuner::action_name(item.action)));
    for (const tuner::AttemptId& item : reply.lost)
        look(item.run_id + "/" + std::to_string(item.attempt) + "/lost");
    known_directives_ = std::move(current);
    return news;
}

void ServerClient::heartbeat_once() {
    tuner::HeartbeatRequest request;
    {
        const std::lock_guard lock(mutex_);
        request.wait_ms = heartbeat_ms_;
        request.running = registration_.running;
    }
    const std::int64_t begin_ms = SystemClock().monotonic_ms();
    Result<Json> answer =
        clients_.heartbeat->post(path("heartbeat"), tuner::to_json(request),
                                 static_cast<int>(request.wait_ms) + kAnswerSlack_ms);
    Result<tuner::HeartbeatReply> reply = answer ? tuner::from_json<tuner::HeartbeatReply>(*answer)
                                                 : Result<tuner::HeartbeatReply>(answer.error());
    if (!reply) return failed(reply.error(), heartbeat_backoff_);
    heartbeat_backoff_.reset();
    events_.contact("");
    const bool early = SystemClock().monotonic_ms() - begin_ms < request.wait_ms / 2;
    const bool news = brings_news(*reply);
    events_.heartbeat(*reply);
    {
        const std::lock_guard lock(mutex_);
        if (server_draining_ != reply->draining) changed_.notify_all();
        server_draining_ = reply->draining;
    }
    if (early && !news) pause(kRepeatPause_ms);
}

}  // namespace tune::worker
