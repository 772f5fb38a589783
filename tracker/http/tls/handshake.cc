// The worker's thread waits for the socket; each step of the handshake, with its public-key
// arithmetic, is made on the threads for it, which stand back. So a flood of handshakes costs other
// connections nothing but their share of the processors. While a step is made the socket is shut
// down at most, never closed: its number could else belong to somebody new.

#include "tracker/http/tls/handshake.h"

#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/system/thread.h"
#include "tracker/http/file_sender.h"
#include "tracker/http/session/client_stream.h"
#include "tracker/http/session/session.h"
#include "tracker/http/tls/tls_identity.h"

namespace tune::tracker {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

/// The first byte of a client that speaks TLS.
constexpr char kHandshakeRecord = 0x16;
/// Of the threads that do handshakes, below that of all others.
constexpr int kStandBackSteps = 5;

/// Counted among the handshakes of its address until it goes.
class HandshakeTicket {
public:
    HandshakeTicket(std::shared_ptr<ServerContext> context, std::string address)
        : context_(std::move(context)), address_(std::move(address)) {
        const std::lock_guard lock(context_->mutex);
        const std::size_t all = ++context_->handshake_count;
        const std::size_t of_address = ++context_->handshakes_of[address_];
        is_beyond_ = all > context_->options.handshakes_max ||
                     of_address > context_->options.handshakes_per_client_max;
    }
    HandshakeTicket(const HandshakeTicket&) = delete;
    HandshakeTicket& operator=(const HandshakeTicket&) = delete;
    ~HandshakeTicket() {
        const std::lock_guard lock(context_->mutex);
        --context_->handshake_count;
        const auto found = context_->handshakes_of.find(address_);
        if (--found->second == 0) context_->handshakes_of.erase(found);
    }
    [[nodiscard]] bool is_beyond() const { return is_beyond_; }

private:
    const std::shared_ptr<ServerContext> context_;
    const std::string address_;
    bool is_beyond_ = false;
};

Response speaks_https() {
    return error_response({Code::kBadRequest,
                           "This port speaks HTTPS, and the request came in plain HTTP. Use the "
                           "same address with https:// instead of http://."});
}

void prepare_thread() {
    static thread_local const bool is_done = [] {
        block_sigpipe();
        stand_back(kStandBackSteps);
        return true;
    }();
    static_cast<void>(is_done);
}

class Handshake final : public Connection, public std::enable_shared_from_this<Handshake> {
public:
    Handshake(tcp::socket socket, std::shared_ptr<Worker> worker,
              std::shared_ptr<ServerContext> context, std::unique_ptr<ConnectionTicket> ticket)
        : worker_(std::move(worker)),
          socket_(std::move(socket)),
          context_(std::move(context)),
          ticket_(std::move(ticket)) {}

    void start() {
        worker_->add(shared_from_this());
        place_.emplace(context_, ticket_->address());
        deadline_ms_ = Worker::now_ms() + context_->options.handshake_timeout_ms;
        error_code failed;
        socket_.non_blocking(true, failed);
        if (failed || worker_->is_draining()) return close();
        if (place_->is_beyond()) {
            if (context_->options.statistics) context_->options.statistics->connection_refused();
            return close();
        }
        wait(tcp::socket::wait_read, &Handshake::look);
    }

    void tick(std::int64_t now_ms) override {
        if (now_ms >= deadline_ms_) close();
    }

    void drain() override { close(); }

    void close() override {
        is_closed_ = true;
        error_code ignored;
        socket_.shutdown(tcp::socket::shutdown_both, ignored);
        if (is_stepping_) return;  // on_step() comes here again
        tls_.reset();
        socket_.close(ignored);
        ticket_.reset();
        place_.reset();
        worker_->remove(this);
    }

private:
    void wait(tcp::socket::wait_type what, void (Handshake::*next)()) {
        socket_.async_wait(what, [self = shared_from_this(), next](const error_code& ec) {
            if (self->is_closed_) return;
            if (ec) return self->close();
            ((*self).*next)();
        });
    }

    /// What the client begins with is left for who understands it.
    void look() {
        char first = 0;
        if (::recv(socket_.native_handle(), &first, 1, MSG_PEEK) != 1) return close();
        if (first != kHandshakeRecord) return go_on(speaks_https());
        tls_ =
            std::make_unique<TlsSession>(context_->options.tls->current(), socket_.native_handle());
        step();
    }

    void step() {
        is_stepping_ = true;
        context_->handshake_pool->post([self = shared_from_this()] {
            prepare_thread();
            const TlsSession::Step step = self->tls_->handshake();
            self->worker_->post([self, step] { self->on_step(step); });
        });
    }

    void on_step(TlsSession::Step step) {
        is_stepping_ = false;
        if (is_closed_) return close();
        switch (step) {
            case TlsSession::Step::kDone: return go_on({});
            case TlsSession::Step::kWantsRead:
                return wait(tcp::socket::wait_read, &Handshake::step);
            case TlsSession::Step::kWantsWrite:
                return wait(tcp::socket::wait_write, &Handshake::step);
            case TlsSession::Step::kFailed: tell_of_certificate(); return close();
        }
    }

    /// At most once a second, so that strangers do not fill the log.
    void tell_of_certificate() {
        const std::string fault = tls_->certificate_fault();
        if (fault.empty()) return;
        static std::atomic<std::int64_t> next_ms{0};
        const std::int64_t now_ms = Worker::now_ms();
        std::int64_t expected = next_ms;
        if (now_ms < expected || !next_ms.compare_exchange_strong(expected, now_ms + 1000)) return;
        log_warning("a client at " + ticket_->address() +
                    " was not let in for its certificate: " + fault);
    }

    /// The connection becomes a session; without TLS only for its refusal.
    void go_on(std::optional<Response> refusal) {
        is_closed_ = true;
        place_.reset();
        const auto self = shared_from_this();
        worker_->remove(this);
        serve_connection(ClientStream(std::move(socket_), std::move(tls_)), worker_, context_,
                         std::move(ticket_), std::move(refusal));
    }

    const std::shared_ptr<Worker> worker_;
    tcp::socket socket_;  // of the worker's loop, which must outlive it
    const std::shared_ptr<ServerContext> context_;
    std::unique_ptr<ConnectionTicket> ticket_;
    std::optional<HandshakeTicket> place_;
    std::unique_ptr<TlsSession> tls_;
    bool is_stepping_ = false;  // on another thread, which has tls_ for itself
    bool is_closed_ = false;
    std::int64_t deadline_ms_ = 0;
};

}  // namespace

void shake_hands(tcp::socket socket, std::shared_ptr<Worker> worker,
                 std::shared_ptr<ServerContext> context, std::unique_ptr<ConnectionTicket> ticket) {
    std::make_shared<Handshake>(std::move(socket), std::move(worker), std::move(context),
                                std::move(ticket))
        ->start();
}

}  // namespace tune::tracker
