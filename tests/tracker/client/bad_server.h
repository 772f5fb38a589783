#pragma once
// A server that answers each connection's first request with the next of some fixed texts and then
// closes it; the last text is repeated.

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "tests/tracker/client/listener.h"

namespace tune::tracker {

class BadServer {
public:
    explicit BadServer(std::vector<std::string> answers) : answers_(std::move(answers)) {
        thread_ = std::thread([this] { run(); });
    }
    ~BadServer() {
        listener_.shut_down();
        thread_.join();
    }

    [[nodiscard]] std::uint16_t port() const { return listener_.port(); }
    [[nodiscard]] int served() const { return served_; }

private:
    void run() {
        for (;;) {
            const int fd = listener_.accept();
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
    Listener listener_;
    std::atomic<int> served_{0};
    std::thread thread_;
};

}  // namespace tune::tracker
