#pragma once
// One keep-alive connection of a simulated agent over epoll: one request at a time, no threads.

#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace tune::swarm {

/// Where the server is, and from which address to connect.
struct Way {
    std::uint16_t port = 0;
    std::string from;
    SSL_CTX* tls = nullptr;  ///< none: plain HTTP; outlives the calls
};

/// Clients that trust the authorities of this PEM file and check that they speak to 127.0.0.1.
/// Nothing: the file cannot be read.
[[nodiscard]] std::shared_ptr<SSL_CTX> trusting(const std::string& ca_file);

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
    /// As send(2) and recv(2); EAGAIN: wanted_ says what to wait for.
    [[nodiscard]] ssize_t put(const char* bytes, std::size_t count);
    [[nodiscard]] ssize_t get(char* room, std::size_t count);
    [[nodiscard]] ssize_t outcome(int result);
    void watch(std::uint32_t events, int operation);

    const int epoll_;
    const Way way_;
    int fd_ = -1;
    std::unique_ptr<SSL, decltype(&SSL_free)> tls_{nullptr, SSL_free};
    std::uint32_t wanted_ = EPOLLIN;
    bool is_old_ = false;  // an answer came on this connection before
    std::string out_;
    std::size_t sent_ = 0;
    std::string in_;
    Done done_;
};

}  // namespace tune::swarm
