#pragma once
// A listening socket on 127.0.0.1, at a port that the system chooses: what the test servers take
// connections from.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

namespace tune::tracker {

class Listener {
public:
    Listener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t length = sizeof address;
        ::bind(fd_, reinterpret_cast<sockaddr*>(&address), length);
        ::listen(fd_, 16);
        ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length);
        port_ = ntohs(address.sin_port);
    }
    ~Listener() { ::close(fd_); }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    [[nodiscard]] std::uint16_t port() const { return port_; }

    /// A connection, or below 0 after shut_down().
    [[nodiscard]] int accept() const { return ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC); }

    /// Ends a waiting accept() of another thread, and all later ones.
    void shut_down() const { ::shutdown(fd_, SHUT_RDWR); }

private:
    const int fd_;
    std::uint16_t port_ = 0;
};

}  // namespace tune::tracker
