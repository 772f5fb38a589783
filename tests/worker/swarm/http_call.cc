// A request goes out as far as the socket takes it, then its answer is read up to its
// Content-Length. A kept connection that the server has closed meanwhile is opened anew, once.

#include "tests/worker/swarm/http_call.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace tune::swarm {
namespace {

sockaddr_in address_of(const std::string& host, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    inet_pton(AF_INET, host.c_str(), &address.sin_addr);
    return address;
}

}  // namespace

std::shared_ptr<SSL_CTX> trusting(const std::string& ca_file) {
    std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
    if (SSL_CTX_load_verify_locations(context.get(), ca_file.c_str(), nullptr) != 1) return nullptr;
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_quiet_shutdown(context.get(), 1);
    SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_RELEASE_BUFFERS |
                                        SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return context;
}

ssize_t HttpCall::outcome(int result) {
    if (result > 0) return result;
    const int error = SSL_get_error(tls_.get(), result);
    wanted_ = error == SSL_ERROR_WANT_WRITE ? EPOLLOUT : EPOLLIN;
    errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN : EIO;
    return -1;
}

ssize_t HttpCall::put(const char* bytes, std::size_t count) {
    wanted_ = EPOLLOUT;
    if (tls_ == nullptr) return ::send(fd_, bytes, count, MSG_NOSIGNAL);
    ERR_clear_error();
    return outcome(SSL_write(tls_.get(), bytes, static_cast<int>(count)));
}

ssize_t HttpCall::get(char* room, std::size_t count) {
    if (tls_ == nullptr) return ::recv(fd_, room, count, 0);
    ERR_clear_error();
    return outcome(SSL_read(tls_.get(), room, static_cast<int>(count)));
}

void HttpCall::watch(std::uint32_t events, int operation) {
    epoll_event event{};
    event.events = events;
    event.data.ptr = this;
    epoll_ctl(epoll_, operation, fd_, &event);
}

bool HttpCall::connect() {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd_ < 0) return false;
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    // The port is chosen when it connects, so that each address has all of them.
    setsockopt(fd_, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    const sockaddr_in from = address_of(way_.from, 0);
    ::bind(fd_, reinterpret_cast<const sockaddr*>(&from), sizeof from);
    const sockaddr_in to = address_of("127.0.0.1", way_.port);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 &&
        errno != EINPROGRESS)
        return false;
    is_old_ = false;
    if (way_.tls != nullptr) {
        tls_.reset(SSL_new(way_.tls));
        SSL_set_fd(tls_.get(), fd_);
        SSL_set_connect_state(tls_.get());
        X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls_.get()), "127.0.0.1");
    }
    watch(EPOLLOUT, EPOLL_CTL_ADD);
    return true;
}

void HttpCall::close() {
    tls_.reset();
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

void HttpCall::start(std::string request, Done done) {
    out_ = std::move(request);
    done_ = std::move(done);
    sent_ = 0;
    in_.clear();
    if (fd_ >= 0) return send();
    if (!connect()) finish(0, {});
}

void HttpCall::finish(int status, std::string body) {
    if (status == 0) close();
    if (done_) std::exchange(done_, {})(status, std::move(body));
}

void HttpCall::send() {
    while (sent_ < out_.size()) {
        const ssize_t count = put(out_.data() + sent_, out_.size() - sent_);
        if (count > 0) {
            sent_ += static_cast<std::size_t>(count);
            continue;
        }
        if (errno == EAGAIN) return watch(wanted_, EPOLL_CTL_MOD);
        if (!is_old_) return finish(0, {});
        close();
        sent_ = 0;
        if (!connect()) finish(0, {});
        return;
    }
    watch(EPOLLIN, EPOLL_CTL_MOD);
}

void HttpCall::on_event(std::uint32_t events) {
    if (!done_) return close();  // the server closed an idle connection
    if (sent_ < out_.size() && (events & (EPOLLERR | EPOLLHUP)) == 0) return send();
    receive();
}

void HttpCall::receive() {
    char buffer[16384];
    while (true) {
        const ssize_t count = get(buffer, sizeof buffer);
        if (count < 0 && errno == EAGAIN) return;
        if (count <= 0) return finish(0, {});
        in_.append(buffer, static_cast<std::size_t>(count));
        const std::size_t head = in_.find("\r\n\r\n");
        if (head == std::string::npos) continue;
        const std::size_t at = in_.find("Content-Length: ");
        const std::size_t length =
            at < head ? std::strtoull(in_.c_str() + at + 16, nullptr, 10) : 0;
        if (in_.size() < head + 4 + length) continue;
        const int status = std::atoi(in_.c_str() + 9);
        const bool is_last = in_.find("Connection: close") < head;
        std::string body = in_.substr(head + 4, length);
        in_.clear();
        in_.shrink_to_fit();
        is_old_ = true;
        if (is_last) close();
        return finish(status, std::move(body));
    }
}

}  // namespace tune::swarm
