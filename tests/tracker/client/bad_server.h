#pragma once
// A server that answers each connection's first request with the next of some fixed texts and then
// closes it; the last text is repeated.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace tune::tracker {

class BadServer {
public:
    explicit BadServer(std::vector<std::string> answers) : answers_(std::move(answers)) {
        listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t length = sizeof address;
        ::bind(listener_, reinterpret_cast<sockaddr*>(&address), length);
        ::listen(listener_, 16);
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length);
        port_ = ntohs(address.sin_port);
        thread_ = std::thread([this] { run(); });
    }
    ~BadServer() {
        ::shutdown(listener_, SHUT_RDWR);
        thread_.join();
        ::close(listener_);
    }

    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] int served() const { return served_; }

private:
    void run() {
        for (;;) {
            const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            if (fd < 0) return;
            std::string request;
            char piece[4096];
            std::size_t wanted = std::string::npos;
            while (request.size() < wanted) {
                const ssize_t got = ::recv(fd, piece, sizeof piece, 0);
                if (got <= 0) break;
                request.append(piece, static_cast<std::size_t>(got));
                const std::size_t head = request.find("\r\n\r\n");
                if (head == std::string::npos) continue;
                const std::size_t field = request.find("Content-Length: ");
                wanted = head + 4 + (field < head ? std::stoul(request.substr(field + 16)) : 0);
            }
            const std::size_t index = static_cast<std::size_t>(served_++);
            const std::string& answer = answers_[std::min(index, answers_.size() - 1)];
            ::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
            ::close(fd);
        }
    }

    std::vector<std::string> answers_;
    int listener_ = -1;
    std::uint16_t port_ = 0;
    std::atomic<int> served_{0};
    std::thread thread_;
};

}  // namespace tune::tracker
