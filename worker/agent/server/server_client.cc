// One loop with one request in flight. A poll names the attempts that are held, acknowledges the
// last answer that arrived, and asks for as many trials as slots are free. It is repeated with the
// same acknowledgement until an answer comes, so that a lost one loses no trial. What arrives
// counts as held from that moment on, although the agent's own loop has not begun it yet: a
// registration that came in between would otherwise give it up.
//
// While a poll waits, the server counts the attempts that end. Where a slot becomes free in another
// way, or no more trials are wanted, a second, short call interrupts the poll and the next one says
// so.
//
// An answer that comes early and says nothing new is followed by a pause, as an error is. Both
// threads wait on a condition variable between calls, and stop() cancels what hangs.

#include "worker/agent/server/server_client.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/text/percent.h"
#include "worker/agent/server/sender.h"

namespace tune::worker {
namespace {

/// Longest wait of an agent that holds nothing, whose polls renew nothing.
constexpr std::int64_t kIdleWait_ms = kLongPollMax_ms - 2'000;
constexpr int kAnswerSlack_ms = 15'000;  // beyond the wait that was asked for
constexpr int kRegisterTimeout_ms = 15'000;
constexpr int kInterruptTimeout_ms = 5'000;
constexpr int kGoodbyeTimeout_ms = 2'000;
/// The server repeats a directive until its attempt has ended; without this pause the polls would
/// spin during a trial's grace time.
constexpr int kRepeatPause_ms = 250;
constexpr const char* kRegisterPath = "/api/2.0/tune/agents/register";

bool is_unknown_agent(const Error& error) {
    return error.code == Code::kResourceDoesNotExist;
}

/// 80 to 100 %, so that many agents do not call in step.
std::int64_t spread(std::int64_t wait_ms) {
    thread_local std::minstd_rand random{std::random_device{}()};
    return std::uniform_int_distribution<std::int64_t>(wait_ms * 8 / 10, wait_ms)(random);
}

void remove_these(std::vector<tuner::AttemptId>& from, const std::vector<tuner::AttemptId>& these) {
    std::erase_if(from, [&](const tuner::AttemptId& id) {
        return std::find(these.begin(), these.end(), id) != these.end();
    });
}

}  // namespace

Result<std::unique_ptr<ServerClient>> ServerClient::create(const std::string& server_url,
                                                           tuner::RegisterRequest registration,
                                                           int free_slots, LinkEvents events) {
    Clients clients;
    for (auto* client : {&clients.poll, &clients.change, &clients.goodbye}) {
        TUNE_TRY(made, connect_to(server_url));
        *client = std::move(made);
    }
    registration.session = random_hex(16);
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
    poll_thread_ = std::thread([this] { poll_loop(); });
    change_thread_ = std::thread([this] { change_loop(); });
}

void ServerClient::set_running(std::vector<tuner::AttemptId> running) {
    const std::lock_guard lock(mutex_);
    registration_.running = std::move(running);
}

void ServerClient::leases_taken(const std::vector<tuner::AttemptId>& leases) {
    const std::lock_guard lock(mutex_);
    remove_these(arrived_, leases);
}

/// With mutex_ held, as the next two.
int ServerClient::wanted_slots() const {
    if (!leasing_ || server_draining_) return 0;
    return std::max({free_slots_, pool_room_ > 0 ? 1 : 0, 0});
}

std::vector<tuner::AttemptId> ServerClient::all_running() const {
    std::vector<tuner::AttemptId> all = registration_.running;
    for (const tuner::AttemptId& id : arrived_)
        if (std::find(all.begin(), all.end(), id) == all.end()) all.push_back(id);
    return all;
}

/// The poll that waits asks for none, and some are wanted, or the other way round.
void ServerClient::interrupt_poll() {
    if (!is_polling_ || (asked_slots_ > 0) == (wanted_slots() > 0)) return;
    wants_interrupt_ = true;
    changed_.notify_all();
}

void ServerClient::free_slot() {
    const std::lock_guard lock(mutex_);
    ++free_slots_;
    interrupt_poll();
}

void ServerClient::free_slot_at_end() {
    const std::lock_guard lock(mutex_);
    ++free_slots_;
}

void ServerClient::set_pool_room(int attempts) {
    const std::lock_guard lock(mutex_);
    if (pool_room_ == attempts) return;
    pool_room_ = attempts;
    if (attempts > 0) interrupt_poll();
}

void ServerClient::take_slot() {
    const std::lock_guard lock(mutex_);
    --free_slots_;
}

void ServerClient::set_gpus(std::vector<std::string> gpus, int fewer_slots, std::string excluded) {
    const std::lock_guard lock(mutex_);
    registration_.excluded.push_back(std::move(excluded));
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

/// The other thread may hang in its poll while the server has to hear at once what is another
/// matter by now.
void ServerClient::change_loop() {
    while (true) {
        bool has_changed = false;
        bool interrupts = false;
        std::int64_t turn = 0;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] {
                return stopping_ || (registered_ && (has_changed_ || wants_interrupt_));
            });
            if (stopping_) return;
            has_changed = std::exchange(has_changed_, false);
            interrupts = std::exchange(wants_interrupt_, false) && is_polling_;
            turn = turn_;
        }
        if (interrupts) interrupt(turn);
        if (has_changed && !register_once(*clients_.change)) register_again();
    }
}

/// If it fails, the server is away, and the poll will find out as well.
void ServerClient::interrupt(std::int64_t turn) {
    tuner::PollRequest request;
    {
        const std::lock_guard lock(mutex_);
        request.session = registration_.session;
        request.ack = registration_.ack;
        request.running = all_running();
    }
    request.turn = turn;
    request.interrupts = true;
    const Result<Json> answer =
        clients_.change->post(poll_path(), tuner::to_json(request), kInterruptTimeout_ms);
    if (!answer) log_debug("the poll could not be interrupted: " + answer.error().text());
}

void ServerClient::stop_leasing() {
    const std::lock_guard lock(mutex_);
    leasing_ = false;
    // Also where it asked for none: the end of an attempt would make that one.
    wants_interrupt_ = is_polling_;
    changed_.notify_all();
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
    clients_.poll->cancel();
    clients_.change->cancel();
    for (std::thread* thread : {&poll_thread_, &change_thread_})
        if (thread->joinable()) thread->join();
    if (!say_goodbye || !was_registered) return;
    goodbye.slots = 0;
    goodbye.leaving = true;
    // A server that is gone already cannot hold a lease for us either.
    const Result<Json> ignored =
        clients_.goodbye->post(kRegisterPath, tuner::to_json(goodbye), kGoodbyeTimeout_ms);
    if (!ignored) log_debug("the server could not be informed that the agent left");
}

std::string ServerClient::poll_path() const {
    return "/api/2.0/tune/agents/" + percent_encode(registration_.agent_id, false) + "/poll";
}

bool ServerClient::pause(int delay_ms) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(delay_ms), [this] { return stopping_; });
    return !stopping_;
}

void ServerClient::failed(const Error& error) {
    if (error.code == Code::kCancelled) return;
    if (is_unknown_agent(error))
        register_again();
    else
        events_.contact(error.text());
    pause(backoff_.next_ms());
}

void ServerClient::poll_loop() {
    while (true) {
        bool registered = false;
        {
            const std::lock_guard lock(mutex_);
            if (stopping_) return;
            registered = registered_;
        }
        if (registered)
            poll_once();
        else
            register_once(*clients_.poll);
    }
}

bool ServerClient::register_once(tracker::Client& client) {
    Json body;
    {
        const std::lock_guard lock(mutex_);
        tuner::RegisterRequest registration = registration_;
        registration.running = all_running();
        body = tuner::to_json(registration);
    }
    Result<Json> answer = client.post(kRegisterPath, body, kRegisterTimeout_ms);
    Result<tuner::RegisterReply> reply = answer ? tuner::from_json<tuner::RegisterReply>(*answer)
                                                : Result<tuner::RegisterReply>(answer.error());
    const bool is_news_of_change = &client == clients_.change.get();
    if (!reply) {
        if (!is_news_of_change) failed(reply.error());
        return false;
    }
    if (!is_news_of_change) backoff_.reset();
    events_.contact("");
    events_.registered(*reply);
    const std::lock_guard lock(mutex_);
    heartbeat_ms_ = std::clamp<std::int64_t>(reply->heartbeat_ms, 100, kLongPollMax_ms);
    registered_ = true;
    server_draining_ = false;
    changed_.notify_all();
    return true;
}

bool ServerClient::brings_news(const tuner::PollReply& reply) {
    std::set<std::string> current;
    bool news = !reply.leases.empty();
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

tuner::PollRequest ServerClient::next_poll() {
    const int port = events_.gang_port ? events_.gang_port() : 0;
    const std::lock_guard lock(mutex_);
    tuner::PollRequest request{.session = registration_.session,
                               .turn = ++turn_,
                               .ack = registration_.ack,
                               .running = all_running(),
                               .free_slots = wanted_slots(),
                               .port = port,
                               .wants_tokens = trials_take_tokens(),
                               .declined = declined_,
                               .leaving = !leasing_};
    request.wait_ms = spread(request.running.empty() ? kIdleWait_ms : heartbeat_ms_);
    asked_slots_ = request.free_slots;
    is_polling_ = true;
    return request;
}

void ServerClient::poll_once() {
    const tuner::PollRequest request = next_poll();
    const std::int64_t begin_ms = SystemClock().monotonic_ms();
    Result<Json> answer = clients_.poll->post(poll_path(), tuner::to_json(request),
                                              static_cast<int>(request.wait_ms) + kAnswerSlack_ms);
    Result<tuner::PollReply> reply = answer ? tuner::from_json<tuner::PollReply>(*answer)
                                            : Result<tuner::PollReply>(answer.error());
    bool was_interrupted = false;
    {
        const std::lock_guard lock(mutex_);
        is_polling_ = false;
        was_interrupted = wants_interrupt_ || (asked_slots_ > 0) != (wanted_slots() > 0);
        wants_interrupt_ = false;
    }
    if (!reply) return failed(reply.error());
    events_.contact("");
    const bool early = SystemClock().monotonic_ms() - begin_ms < request.wait_ms / 2;
    const bool is_empty = reply->leases.empty() && reply->directives.empty() && reply->lost.empty();
    const bool news = brings_news(*reply);
    take_leases(request, *reply);
    events_.heartbeat({.directives = std::move(reply->directives),
                       .lost = std::move(reply->lost),
                       .draining = reply->draining});
    // A server that has nothing, and does not wait until it has, is not asked in a loop.
    const bool is_hasty = early && is_empty && !was_interrupted;
    if (is_hasty || !reply->lease_error.empty()) {
        if (!reply->lease_error.empty())
            log_debug("the server can give no trials now: " + reply->lease_error);
        pause(backoff_.next_ms());
        return;
    }
    backoff_.reset();
    if (early && !news && !was_interrupted) pause(kRepeatPause_ms);
}

/// From here on the agent answers for what was leased.
void ServerClient::take_leases(const tuner::PollRequest& request, tuner::PollReply& reply) {
    std::vector<tuner::AttemptId> ids;
    for (const tuner::Lease& lease : reply.leases) ids.push_back(lease.id());
    const bool has_gang =
        std::any_of(reply.leases.begin(), reply.leases.end(),
                    [](const tuner::Lease& lease) { return lease.gang.has_value(); });
    {
        const std::lock_guard lock(mutex_);
        registration_.ack = std::max(registration_.ack, reply.sequence);
        remove_these(declined_, request.declined);
        if (server_draining_ != reply.draining) changed_.notify_all();
        server_draining_ = reply.draining;
        if (!leasing_) {
            declined_.insert(declined_.end(), ids.begin(), ids.end());
            return;
        }
        free_slots_ -= static_cast<int>(ids.size());
        arrived_.insert(arrived_.end(), ids.begin(), ids.end());
    }
    // Before the next lease is asked for, which must not name it again.
    if (has_gang && events_.gang_port_given) events_.gang_port_given(request.port);
    if (!ids.empty()) events_.leased(std::move(reply.leases));
}

}  // namespace tune::worker
