#pragma once
// The agent's conversation with the server: registration, leases, heartbeats. Two threads, each in
// a long-poll of its own, so that a directive is here as soon as the server has it, and one that
// sleeps until what this machine has changes.

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
    /// Before a lease is asked for: LeaseRequest::port.
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

    /// The attempts whose leases the heartbeats extend.
    void set_running(std::vector<tuner::AttemptId> running);
    /// Gives a slot back that a lease took (each lease takes one) or that take_slot took.
    void free_slot();
    /// So many more attempts fit into processes that run already: leases are asked for also while
    /// no slot is free.
    void set_pool_room(int attempts);
    /// Takes a slot for an adopted attempt.
    void take_slot();
    /// Registers anew with these GPUs and so many slots fewer.
    void set_gpus(std::vector<std::string> gpus, int fewer_slots);
    /// Asks for no more leases; a lease that is being asked for is abandoned.
    void stop_leasing();
    /// Somebody's call was answered with "unknown agent": registers anew.
    void register_again();
    /// Ends the threads. With `say_goodbye` the server learns that this agent has no slots, so
    /// that a lease given while we left goes to another at once. Idempotent.
    void stop(bool say_goodbye);

    [[nodiscard]] bool draining() const;

private:
    struct Clients {
        std::unique_ptr<tracker::Client> lease;
        std::unique_ptr<tracker::Client> heartbeat;
        std::unique_ptr<tracker::Client> change;
        std::unique_ptr<tracker::Client> goodbye;
    };
    ServerClient(Clients clients, tuner::RegisterRequest registration, int free_slots,
                 LinkEvents events);
    void lease_loop();
    void heartbeat_loop();
    void change_loop();
    void ask_for_leases(int free_slots);
    bool register_once(tracker::Client& client);
    void heartbeat_once();
    bool brings_news(const tuner::HeartbeatReply& reply);
    void failed(const Error& error, Backoff& backoff);
    bool pause(int delay_ms);  // false: stopping
    [[nodiscard]] std::string path(const char* call) const;

    const LinkEvents events_;
    const Clients clients_;
    std::thread lease_thread_;
    std::thread heartbeat_thread_;
    std::thread change_thread_;
    Backoff lease_backoff_;                   // of the lease thread
    Backoff heartbeat_backoff_;               // of the heartbeat thread
    std::set<std::string> known_directives_;  // of the heartbeat thread

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    // Guarded by mutex_:
    tuner::RegisterRequest registration_;
    int free_slots_;
    int pool_room_ = 0;
    std::int64_t heartbeat_ms_ = tuner::kHeartbeat_ms;
    bool registered_ = false;
    bool has_changed_ = false;  // what this agent has, since it registered
    bool leasing_ = true;
    bool server_draining_ = false;
    bool stopping_ = false;
};

}  // namespace tune::worker
