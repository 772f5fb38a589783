#pragma once
// A TCP connection that sends exactly the bytes a test says, also illegal ones.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tune::tracker {

struct RawResponse {
    int status = 0;                              // 0: the connection ended without an answer
    std::map<std::string, std::string> headers;  // names in lower case
    std::string body;
};

class RawClient {
public:
    static constexpr int kPatience_ms = 60'000;

    /// `last_byte`: connects from 127.0.0.<last_byte>.
    explicit RawClient(std::uint16_t port, std::uint32_t last_byte = 1) {
        fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + last_byte);
        if (::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
            throw std::runtime_error("cannot bind");
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
            throw std::runtime_error("cannot connect");
    }
    ~RawClient() { close(); }
    RawClient(const RawClient&) = delete;
    RawClient& operator=(const RawClient&) = delete;

    void close() {
        if (fd_ >= 0) ::close(fd_);
        fd_ = -1;
    }

    /// False when the peer has closed.
    bool send(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent <= 0) return false;
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
        return true;
    }

    void end_sending() { ::shutdown(fd_, SHUT_WR); }

    /// Whether bytes of the peer are there within this time.
    [[nodiscard]] bool is_readable(int wait_ms) const {
        pollfd wait{fd_, POLLIN, 0};
        return ::poll(&wait, 1, wait_ms) > 0;
    }

    /// More bytes into the buffer; false at the end of the stream or after kPatience_ms.
    bool fill() {
        pollfd wait{fd_, POLLIN, 0};
        if (::poll(&wait, 1, kPatience_ms) <= 0) return false;
        char piece[65536];
        const ssize_t got = ::recv(fd_, piece, sizeof piece, 0);
        if (got <= 0) return false;
        buffer_.append(piece, static_cast<std::size_t>(got));
        return true;
    }

    bool is_closed_by_peer() { return buffer_.empty() && !fill() && buffer_.empty(); }

    /// Everything up to and with `end`; empty if the stream ends before.
    std::string read_until(std::string_view end) {
        std::size_t at;
        while ((at = buffer_.find(end)) == std::string::npos)
            if (!fill()) return {};
        std::string out = buffer_.substr(0, at + end.size());
        buffer_.erase(0, at + end.size());
        return out;
    }

    std::string read_bytes(std::size_t count) {
        while (buffer_.size() < count)
            if (!fill()) break;
        std::string out = buffer_.substr(0, count);
        buffer_.erase(0, out.size());
        return out;
    }

    /// One response by Content-Length. `has_body` is false for answers to HEAD.
    RawResponse read_response(bool has_body = true) {
        RawResponse response;
        std::string head = read_until("\r\n\r\n");
        if (head.empty()) return response;
        response.status = std::atoi(head.substr(9, 3).c_str());
        std::size_t line = head.find("\r\n") + 2;
        while (line < head.size() - 2) {
            const std::size_t end = head.find("\r\n", line);
            const std::size_t colon = head.find(": ", line);
            std::string name = head.substr(line, colon - line);
            for (char& c : name) c = static_cast<char>(std::tolower(c));
            response.headers[name] = head.substr(colon + 2, end - colon - 2);
            line = end + 2;
        }
        if (has_body && response.headers.count("content-length") != 0)
            response.body = read_bytes(std::stoul(response.headers["content-length"]));
        return response;
    }

    RawResponse exchange(std::string_view bytes) {
        send(bytes);
        return read_response();
    }

private:
    int fd_ = -1;
    std::string buffer_;
};

/// A GET of `path` with a Host that the server accepts.
inline std::string get(std::string_view path, std::string_view more_headers = "") {
    return "GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n" +
           std::string(more_headers) + "\r\n";
}

inline std::string post(std::string_view path, std::string_view body,
                        std::string_view more_headers = "") {
    return "POST " + std::string(path) +
           " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\nContent-Type: application/json\r\n" + std::string(more_headers) + "\r\n" +
           std::string(body);
}

/// `count` clients that a TestServer has answered and whose connections stay open.
inline std::vector<std::unique_ptr<RawClient>> answered_clients(std::uint16_t port, int count) {
    std::vector<std::unique_ptr<RawClient>> clients;
    while (count-- > 0) {
        clients.push_back(std::make_unique<RawClient>(port));
        if (clients.back()->exchange(get("/hello/x")).status != 200)
            throw std::runtime_error("a client is refused");
    }
    return clients;
}

/// Connects again and again until a TestServer has a place: it needs a moment to see that others
/// have ended.
inline void wait_for_place(std::uint16_t port) {
    while (RawClient(port).exchange(get("/hello/x")).status != 200) {
    }
}

}  // namespace tune::tracker
