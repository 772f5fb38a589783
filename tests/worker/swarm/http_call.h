#pragma once
// One keep-alive connection of a simulated agent over epoll: one request at a time, no threads.

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <string>

namespace tune::swarm {

/// Where the server is, and from which address to connect.
struct Way {
    std::uint16_t port = 0;
    std::string from;
};

/// Calls `done` with the status and the body; status 0: the connection failed or ended. Connects
/// when it has to. Not thread-safe.
class HttpCall {
public:
    using Done = std::function<void(int status, std::string body)>;

    HttpCall(int epoll, const Way& way) : epoll_(epoll), way_(way) {}
    ~HttpCall() { close(); }
    HttpCall(const HttpCall&) = delete;
    HttpCall& operator=(const HttpCall&) = delete;

    /// REQUIRES: !is_busy().
    void start(std::string request, Done done);
    [[nodiscard]] bool is_busy() const { return static_cast<bool>(done_); }
    /// What epoll says of its descriptor; the event's data.ptr is this object.
    void on_event(std::uint32_t events);

private:
    [[nodiscard]] bool connect();
    void close();
    void send();
    void receive();
    void finish(int status, std::string body);
    void watch(std::uint32_t events, int operation);

    const int epoll_;
    const Way way_;
    int fd_ = -1;
    bool is_old_ = false;  // an answer came on this connection before
    std::string out_;
    std::size_t sent_ = 0;
    std::string in_;
    Done done_;
};

}  // namespace tune::swarm
