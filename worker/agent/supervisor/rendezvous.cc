// Scopes and their keys are lists: there are a few scopes, and two keys a process in each. A scope
// of Horovod's own (all processes, those of a machine, one of each machine) has as many members as
// the variables say, and is emptied when all of them have said by DELETE that they are done, so
// that a further hvd.init() begins with nothing; in any other a DELETE takes a key away. That is
// what Horovod's server does.

#include "worker/agent/supervisor/rendezvous.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "worker/agent/supervisor/rendezvous_request.h"

namespace tune::worker {

struct Rendezvous::Entry {
    Entry* next = nullptr;
    char* text = nullptr;  // the key, then the value
    std::size_t key_size = 0;
    std::size_t value_size = 0;
};

struct Rendezvous::Scope {
    Scope* next = nullptr;
    char* name = nullptr;
    std::size_t name_size = 0;
    Entry* entries = nullptr;
    int members = 0;  // 0: any number
    int finished = 0;
};

namespace {

constexpr int kOk = 200;
constexpr int kNotFound = 404;
constexpr int kUnavailable = 503;
constexpr int kFull = 507;
constexpr std::size_t kFirstRoom = 4096;

/// Of "NAME=value" the value; nullptr without one.
const char* value_of(char* const* variables, const char* name) {
    const std::size_t length = strlen(name);
    for (; *variables != nullptr; ++variables)
        if (strncmp(*variables, name, length) == 0 && (*variables)[length] == '=')
            return *variables + length + 1;
    return nullptr;
}

int number_of(char* const* variables, const char* name) {
    const char* const text = value_of(variables, name);
    return text == nullptr ? -1 : atoi(text);
}

/// Never null where it succeeds, also for nothing.
char* copy_of(const char* text, std::size_t size, const char* more, std::size_t more_size) {
    char* const copy = static_cast<char*>(malloc(size + more_size + 1));
    if (copy == nullptr) return nullptr;
    memcpy(copy, text, size);
    if (more_size > 0) memcpy(copy + size, more, more_size);
    copy[size + more_size] = '\0';
    return copy;
}

const char* phrase_of(int status) {
    switch (status) {
        case kOk: return "OK";
        case kNotFound: return "Not Found";
        case kUnavailable: return "Service Unavailable";
        case kFull: return "Insufficient Storage";
        default: return "Refused";
    }
}

}  // namespace

Rendezvous* Rendezvous::open(char* const* variables, int complaints) {
    const char* const address = value_of(variables, "HOROVOD_GLOO_RENDEZVOUS_ADDR");
    const int port = number_of(variables, "HOROVOD_GLOO_RENDEZVOUS_PORT");
    if (address == nullptr || port <= 0 || number_of(variables, "HOROVOD_RANK") != 0)
        return nullptr;
    void* const memory = malloc(sizeof(Rendezvous));
    if (memory == nullptr) return nullptr;
    auto* const self = new (memory) Rendezvous();
    self->world_ = number_of(variables, "HOROVOD_SIZE");
    self->local_ = number_of(variables, "HOROVOD_LOCAL_SIZE");
    self->machines_ = number_of(variables, "HOROVOD_CROSS_SIZE");
    // "ADDRESS:PORT/PATH", to which the client adds ":PORT/SCOPE/KEY".
    const char* const path = strchr(address, '/');
    const int length = path == nullptr
                           ? snprintf(self->prefix_, sizeof prefix_, "/")
                           : snprintf(self->prefix_, sizeof prefix_, "%s:%d/", path, port);
    const bool fits = length > 0 && length < static_cast<int>(sizeof prefix_);
    if (fits && self->listen_at(address, strcspn(address, ":/"), port)) return self;
    const bool is_taken = fits && errno == EADDRINUSE;
    dprintf(complaints, "tune: hvd.init() will fail: cannot listen on port %d: %s\n", port,
            is_taken ? "another program does" : "the system refuses");
    free(memory);
    return nullptr;
}

/// On the address that the others were told where it is this machine's own, else on all.
bool Rendezvous::listen_at(const char* address, std::size_t length, int port) {
    char text[INET_ADDRSTRLEN] = {};
    sockaddr_in place = {};
    place.sin_family = AF_INET;
    place.sin_port = htons(static_cast<std::uint16_t>(port));
    if (length < sizeof text) memcpy(text, address, length);
    if (inet_pton(AF_INET, text, &place.sin_addr) != 1) place.sin_addr.s_addr = htonl(INADDR_ANY);
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener_ < 0) return false;
    const int yes = 1;
    setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    const auto bind_there = [&] {
        return bind(listener_, reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0;
    };
    bool is_bound = bind_there();
    if (!is_bound && errno == EADDRNOTAVAIL) {
        place.sin_addr.s_addr = htonl(INADDR_ANY);
        is_bound = bind_there();
    }
    if (is_bound && listen(listener_, SOMAXCONN) == 0) return true;
    const int error = errno;
    close(listener_);
    errno = error;
    return false;
}

int Rendezvous::wanted(pollfd* polls) const {
    polls[0] = {listener_, POLLIN, 0};
    for (int i = 0; i < kRendezvousConnectionsMax; ++i) {
        const Connection& connection = connections_[i];
        const short events = connection.is_answered ? POLLOUT : POLLIN;
        polls[i + 1] = {connection.fd, events, 0};  // without one -1, which poll passes over
    }
    return kRendezvousPollsMax;
}

void Rendezvous::serve(const pollfd* polls) {
    for (int i = 0; i < kRendezvousConnectionsMax; ++i) {
        Connection& connection = connections_[i];
        if (connection.fd < 0 || connection.fd != polls[i + 1].fd || polls[i + 1].revents == 0)
            continue;
        if (connection.is_answered)
            send_rest(connection);
        else
            receive(connection);
    }
    if (polls[0].revents != 0) accept_all();
}

void Rendezvous::accept_all() {
    while (true) {
        const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && errno == EINTR) continue;
        if (fd < 0) return;
        Connection* place = &connections_[0];
        for (Connection& one : connections_)
            if (place->fd >= 0 && (one.fd < 0 || one.number < place->number)) place = &one;
        close_connection(*place);
        place->fd = fd;
        place->number = ++connections_made_;
    }
}

void Rendezvous::close_connection(Connection& connection) {
    if (connection.fd >= 0) close(connection.fd);
    free(connection.text);
    connection = Connection();
}

void Rendezvous::receive(Connection& connection) {
    while (true) {
        if (connection.room - connection.size < kFirstRoom) {
            const std::size_t room = connection.room == 0 ? kFirstRoom * 2 : connection.room * 2;
            void* const grown = realloc(connection.text, room);
            if (grown == nullptr) return close_connection(connection);
            connection.text = static_cast<char*>(grown);
            connection.room = room;
        }
        const ssize_t count = recv(connection.fd, connection.text + connection.size,
                                   connection.room - connection.size, 0);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (count <= 0) return close_connection(connection);
        connection.size += static_cast<std::size_t>(count);
        const std::size_t looked = connection.size;
        answer(connection);
        if (connection.fd < 0 || connection.is_answered) return;
        if (looked > kRendezvousHeadMax + kRendezvousValueMax) return close_connection(connection);
    }
}

void Rendezvous::answer(Connection& connection) {
    const RendezvousRequest request =
        read_rendezvous_request({connection.text, connection.size}, prefix_);
    if (!request.is_whole) return;
    if (request.refusal != 0) return respond(connection, request.refusal, "", 0);
    Scope* const scope = find_scope(request.scope.data(), request.scope.size());
    switch (request.method) {
        case RendezvousMethod::kPut:
            return respond(connection,
                           put(request.scope.data(), request.scope.size(), request.key.data(),
                               request.key.size(), request.value.data(), request.value.size()),
                           "", 0);
        case RendezvousMethod::kDelete:
            if (scope != nullptr) finish(*scope, request.key.data(), request.key.size());
            return respond(connection, kOk, "", 0);
        case RendezvousMethod::kGet: break;
    }
    Entry** const found =
        scope == nullptr ? nullptr : find_entry(*scope, request.key.data(), request.key.size());
    if (found == nullptr) return respond(connection, kNotFound, "", 0);
    const Entry& entry = **found;
    respond(connection, kOk, entry.text + entry.key_size, entry.value_size);
}

void Rendezvous::respond(Connection& connection, int status, const char* value, std::size_t size) {
    // Horovod's client knows this header by exactly these letters.
    char head[128];
    const int length = snprintf(head, sizeof head,
                                "HTTP/1.1 %d %s\r\nContent-Length: %zu\r\nConnection: close\r\n"
                                "\r\n",
                                status, phrase_of(status), size);
    char* const text = copy_of(head, static_cast<std::size_t>(length), value, size);
    if (text == nullptr) return close_connection(connection);
    free(connection.text);
    connection.text = text;
    connection.size = static_cast<std::size_t>(length) + size;
    connection.sent = 0;
    connection.is_answered = true;
    send_rest(connection);
}

void Rendezvous::send_rest(Connection& connection) {
    while (connection.sent < connection.size) {
        const ssize_t count = send(connection.fd, connection.text + connection.sent,
                                   connection.size - connection.sent, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (count <= 0) break;
        connection.sent += static_cast<std::size_t>(count);
    }
    close_connection(connection);
}

Rendezvous::Scope* Rendezvous::find_scope(const char* name, std::size_t size) const {
    for (Scope* scope = scopes_; scope != nullptr; scope = scope->next)
        if (scope->name_size == size && memcmp(scope->name, name, size) == 0) return scope;
    return nullptr;
}

/// What leads to it, so that it can be taken out; nullptr without one.
Rendezvous::Entry** Rendezvous::find_entry(Scope& scope, const char* key, std::size_t size) {
    for (Entry** at = &scope.entries; *at != nullptr; at = &(*at)->next)
        if ((*at)->key_size == size && memcmp((*at)->text, key, size) == 0) return at;
    return nullptr;
}

/// Of Horovod's own scopes; those of its process sets are named after them, and have any number.
int Rendezvous::members_of(const char* scope) const {
    if (strstr(scope, "_process_set_hash_") != nullptr) return 0;
    if (strcmp(scope, "global") == 0) return world_;
    if (strncmp(scope, "local_", 6) == 0) return local_;
    return strncmp(scope, "cross_", 6) == 0 ? machines_ : 0;
}

int Rendezvous::put(const char* scope_name, std::size_t scope_size, const char* key,
                    std::size_t key_size, const char* value, std::size_t value_size) {
    const std::size_t more = sizeof(Scope) + sizeof(Entry) + scope_size + key_size + value_size;
    if (bytes_ + more > kRendezvousBytesMax || keys_ + 2 > kRendezvousKeysMax) return kFull;
    Scope* scope = find_scope(scope_name, scope_size);
    if (scope == nullptr) {
        void* const memory = malloc(sizeof(Scope));
        char* const name = copy_of(scope_name, scope_size, "", 0);
        if (memory == nullptr || name == nullptr) {
            free(memory);
            free(name);
            return kUnavailable;
        }
        scope = new (memory) Scope{.next = scopes_, .name = name, .name_size = scope_size};
        scope->members = members_of(name);
        scopes_ = scope;
        ++keys_;
        bytes_ += sizeof(Scope) + scope_size;
    }
    void* const memory = malloc(sizeof(Entry));
    char* const text = copy_of(key, key_size, value, value_size);
    if (memory == nullptr || text == nullptr) {
        free(memory);
        free(text);
        return kUnavailable;
    }
    if (Entry** const old = find_entry(*scope, key, key_size)) remove(old);
    scope->entries = new (memory)
        Entry{.next = scope->entries, .text = text, .key_size = key_size, .value_size = value_size};
    ++keys_;
    bytes_ += sizeof(Entry) + key_size + value_size;
    return kOk;
}

void Rendezvous::remove(Entry** entry) {
    Entry* const gone = *entry;
    *entry = gone->next;
    --keys_;
    bytes_ -= sizeof(Entry) + gone->key_size + gone->value_size;
    free(gone->text);
    free(gone);
}

void Rendezvous::finish(Scope& scope, const char* key, std::size_t size) {
    if (scope.members == 0) {
        if (Entry** const found = find_entry(scope, key, size)) remove(found);
        return;
    }
    if (++scope.finished < scope.members) return;
    scope.finished = 0;
    while (scope.entries != nullptr) remove(&scope.entries);
}

}  // namespace tune::worker
