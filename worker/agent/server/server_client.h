#pragma once
// The agent's conversation with the server: registration, leases, heartbeats. One thread in one
// long-poll, through which everything comes as soon as the server has it, and one that sleeps until
// what this machine has changes while that poll waits.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "tracker/client/client.h"
#include "tuner/protocol.h"
#include "worker/agent/server/backoff.h"

namespace tune::worker {

/// Called on the client's threads.
struct LinkEvents {
    std::function<void(const tuner::RegisterReply&)> registered;
    std::function<void(std::vector<tuner::Lease>)> leased;
    std::function<void(const tuner::HeartbeatReply&)> heartbeat;
    /// A call was answered (empty) or failed for this reason.
    std::function<void(const std::string& error)> contact;
    /// Before a lease is asked for: PollRequest::port.
    std::function<int()> gang_port = {};
    /// An attempt of several processes was leased with this port.
    std::function<void(int)> gang_port_given = {};
};

/// All methods from any thread.
class ServerClient {
public:
    /// `registration.running` is kept up to date by set_running. Errors: kInvalidParameterValue for
    /// a URL that cannot be used.
    [[nodiscard]] static Result<std::unique_ptr<ServerClient>> create(
        const std::string& server_url, tuner::RegisterRequest registration, int free_slots,
        LinkEvents events);
    ~ServerClient();
    ServerClient(const ServerClient&) = delete;
    ServerClient& operator=(const ServerClient&) = delete;

    void start();

    /// The attempts whose leases the polls extend.
    void set_running(std::vector<tuner::AttemptId> running);
    /// What LinkEvents::leased brought is in what set_running was told, or not wanted.
    void leases_taken(const std::vector<tuner::AttemptId>& leases);
    /// Gives a slot back that a lease took (each lease takes one) or that take_slot took. The
    /// server hears of it at once.
    void free_slot();
    /// The same for a slot whose attempt's end is about to be sent, by which the server knows.
    void free_slot_at_end();
    /// So many more attempts fit into processes that run already: leases are asked for also while
    /// no slot is free.
    void set_pool_room(int attempts);
    /// Takes a slot for an adopted attempt.
    void take_slot();
    /// Registers anew with these GPUs, so many slots fewer and one more word on why.
    void set_gpus(std::vector<std::string> gpus, int fewer_slots, std::string excluded);
    /// Asks for no more leases; one that is on its way is declined.
    void stop_leasing();
    /// Somebody's call was answered with "unknown agent": registers anew.
    void register_again();
    /// Ends the threads. With `say_goodbye` the server learns that this agent leaves, so that a
    /// lease given meanwhile goes to another at once. Idempotent.
    void stop(bool say_goodbye);

    [[nodiscard]] bool draining() const;

private:
    struct Clients {
        std::unique_ptr<tracker::Client> poll;
        std::unique_ptr<tracker::Client> change;
        std::unique_ptr<tracker::Client> goodbye;
    };
    ServerClient(Clients clients, tuner::RegisterRequest registration, int free_slots,
                 LinkEvents events);
    void poll_loop();
    void change_loop();
    void poll_once();
    [[nodiscard]] tuner::PollRequest next_poll();
    void take_leases(const tuner::PollRequest& request, tuner::PollReply& reply);
    bool register_once(tracker::Client& client);
    void interrupt(std::int64_t turn);
    void interrupt_poll();
    [[nodiscard]] int wanted_slots() const;
    [[nodiscard]] std::vector<tuner::AttemptId> all_running() const;
    bool brings_news(const tuner::PollReply& reply);
    void failed(const Error& error);
    bool pause(int delay_ms);  // false: stopping
    [[nodiscard]] std::string poll_path() const;

    const LinkEvents events_;
    const Clients clients_;
    std::thread poll_thread_;
    std::thread change_thread_;
    Backoff backoff_;                         // of the poll thread
    std::set<std::string> known_directives_;  // of the poll thread

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    // Guarded by mutex_:
    tuner::RegisterRequest registration_;
    int free_slots_;
    int pool_room_ = 0;
    std::int64_t heartbeat_ms_ = tuner::kHeartbeat_ms;
    std::vector<tuner::AttemptId> arrived_;   // leased, and not yet in registration_.running
    std::vector<tuner::AttemptId> declined_;  // leased, and not wanted
    std::int64_t turn_ = 0;                   // of the last poll
    int asked_slots_ = 0;                     // by the poll that waits
    bool is_polling_ = false;
    bool wants_interrupt_ = false;
    bool registered_ = false;
    bool has_changed_ = false;  // what this agent has, since it registered
    bool leasing_ = true;
    bool server_draining_ = false;
    bool stopping_ = false;
};

}  // namespace tune::worker
