#pragma once
// Where the processes of an attempt meet that call hvd.init(): the HTTP store of keys and values
// that Horovod's own launcher has (horovod/runner/http/http_server.py of 0.28.1). It runs in the
// leader of the machine that has rank 0, from before the processes start until the last one there
// ends.
//
// Horovod's client sends no credential, so the address that it is given has a path in it which
// names the attempt: what is asked without it is refused. That keeps attempts apart. It is no
// secret: whoever reaches the port and knows the run's id is answered.
//
// Its client speaks IPv4 only, one request a connection.

#include <poll.h>

#include <cstddef>

namespace tune::worker {

/// Of all keys and values together; beyond it 507. Enough for about 650 processes.
inline constexpr std::size_t kRendezvousBytesMax = 64u << 20;
inline constexpr int kRendezvousKeysMax = 16'384;
/// At once; the oldest one gives way to another.
inline constexpr int kRendezvousConnectionsMax = 64;
inline constexpr int kRendezvousPollsMax = kRendezvousConnectionsMax + 1;

/// One thread; nothing waits. Memory that cannot be had is an answer of 503.
class Rendezvous {
public:
    /// Listens where the variables of the first process here say (HOROVOD_GLOO_RENDEZVOUS_ADDR,
    /// _PORT), if that is the process of rank 0. nullptr: there is nothing to listen for, or it
    /// cannot be; `complaints`, a descriptor, then gets a line of text. Lives as long as the
    /// process.
    [[nodiscard]] static Rendezvous* open(char* const* variables, int complaints);

    /// What to wait for; how many. REQUIRES: room for kRendezvousPollsMax.
    int wanted(pollfd* polls) const;
    /// After a wait for those: takes and answers requests.
    void serve(const pollfd* polls);

    Rendezvous(const Rendezvous&) = delete;
    Rendezvous& operator=(const Rendezvous&) = delete;

private:
    struct Entry;
    struct Scope;
    struct Connection {
        int fd = -1;
        char* text = nullptr;  // what has come, then what is to be sent
        std::size_t size = 0;
        std::size_t room = 0;
        std::size_t sent = 0;
        bool is_answered = false;
        long number = 0;  // of the connections, in their order
    };

    Rendezvous() = default;
    bool listen_at(const char* address, std::size_t length, int port);
    void accept_all();
    void receive(Connection& connection);
    void answer(Connection& connection);
    /// REQUIRES: `value` is not in the connection's text.
    static void respond(Connection& connection, int status, const char* value, std::size_t size);
    static void send_rest(Connection& connection);
    static void close_connection(Connection& connection);

    Scope* find_scope(const char* name, std::size_t size) const;
    [[nodiscard]] static Entry** find_entry(Scope& scope, const char* key, std::size_t size);
    int put(const char* scope, std::size_t scope_size, const char* key, std::size_t key_size,
            const char* value, std::size_t value_size);
    void finish(Scope& scope, const char* key, std::size_t size);
    void remove(Entry** entry);
    [[nodiscard]] int members_of(const char* scope) const;

    int listener_ = -1;
    char prefix_[512] = {};  // "/" or "/<attempt>:<port>/"
    int world_ = 1;
    int local_ = 1;
    int machines_ = 1;
    Scope* scopes_ = nullptr;
    int keys_ = 0;  // and scopes
    std::size_t bytes_ = 0;
    long connections_made_ = 0;
    Connection connections_[kRendezvousConnectionsMax] = {};
};

}  // namespace tune::worker
