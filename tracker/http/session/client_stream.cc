// Each turn encrypts at most kTurnBytes, then other connections of the thread have theirs. Head and
// body of a small answer leave as one record: two would cost a system call more.

#include "tracker/http/session/client_stream.h"

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

namespace tune::tracker {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

/// What one record of TLS holds at most.
constexpr std::size_t kRecordBytes = 16 << 10;
/// Bytes written before other connections have their turn: about 0.1 ms.
constexpr std::size_t kTurnBytes = 64 << 10;

}  // namespace

/// `is_own_turn`: the caller was called by the event loop, so the handler may run at once.
void ClientStream::complete(Completion done, const error_code& ec, std::size_t count,
                            bool is_own_turn) {
    if (is_own_turn) return done(ec, count);
    boost::asio::post(socket_.get_executor(),
                      [done = std::move(done), ec, count] { done(ec, count); });
}

/// Mostly the next request is not there yet, so the socket is waited for first.
void ClientStream::read_encrypted(std::span<char> room, Completion done) {
    if (tls_->has_pending()) return finish_read(room, std::move(done), false);
    socket_.async_wait(tcp::socket::wait_read,
                       [this, room, done = std::move(done)](const error_code& ec) mutable {
                           if (ec || !tls_) return done(ec, 0);
                           finish_read(room, std::move(done), true);
                       });
}

void ClientStream::finish_read(std::span<char> room, Completion done, bool is_own_turn) {
    std::size_t count = 0;
    const TlsSession::Step step = tls_->read(room, count);
    if (step == TlsSession::Step::kWantsRead || step == TlsSession::Step::kWantsWrite) {
        const auto what =
            step == TlsSession::Step::kWantsRead ? tcp::socket::wait_read : tcp::socket::wait_write;
        return socket_.async_wait(
            what, [this, room, done = std::move(done)](const error_code& ec) mutable {
                if (ec || !tls_) return done(ec, 0);
                finish_read(room, std::move(done), true);
            });
    }
    error_code ec;
    if (step == TlsSession::Step::kFailed) ec = boost::asio::error::connection_reset;
    if (step == TlsSession::Step::kDone && count == 0) ec = boost::asio::error::eof;
    complete(std::move(done), ec, count, is_own_turn);
}

std::string_view ClientStream::next_record(const std::array<std::string_view, 2>& rest) {
    const auto& [first, second] = rest;
    if (first.empty()) return second.substr(0, kRecordBytes);
    if (second.empty() || first.size() >= kRecordBytes) return first.substr(0, kRecordBytes);
    joined_.assign(first);
    joined_.append(second.substr(0, kRecordBytes - first.size()));
    return joined_;
}

void ClientStream::write_encrypted(std::array<std::string_view, 2> rest, std::size_t written,
                                   Completion done, bool is_own_turn) {
    // After a wait one record is enough: the peer is slow, and its progress is to be seen.
    const std::size_t turn_end = is_own_turn ? written + 1 : kTurnBytes;
    while (written < turn_end && (!rest[0].empty() || !rest[1].empty())) {
        std::size_t count = 0;
        const TlsSession::Step step = tls_->write(next_record(rest), count);
        if (step == TlsSession::Step::kFailed)
            return complete(std::move(done), boost::asio::error::connection_reset, written,
                            is_own_turn);
        if (step != TlsSession::Step::kDone) {
            const auto what = step == TlsSession::Step::kWantsRead ? tcp::socket::wait_read
                                                                   : tcp::socket::wait_write;
            return socket_.async_wait(
                what, [this, rest, written, done = std::move(done)](const error_code& ec) mutable {
                    if (ec || !tls_) return done(ec, written);
                    write_encrypted(rest, written, std::move(done), true);
                });
        }
        written += count;
        for (std::string_view& piece : rest) {
            const std::size_t taken = std::min(count, piece.size());
            piece.remove_prefix(taken);
            count -= taken;
        }
    }
    complete(std::move(done), {}, written, is_own_turn);
}

void ClientStream::end_sending() {
    if (tls_) tls_->say_end();
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
}

void ClientStream::close(bool is_whole) {
    if (!socket_.is_open()) return;
    if (tls_ && is_whole) tls_->say_end();
    tls_.reset();
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_both, ignored);
    socket_.close(ignored);
}

}  // namespace tune::tracker
