#pragma once
// The bytes of one connection, plain or through TLS: what sessions and streams read and write.

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "tracker/http/tls/tls_session.h"

namespace tune::tracker {

/// As with a socket, one read and one write may be under way at a time, their handlers run on the
/// worker's thread and never within the call that starts them, and keep the stream alive. May be
/// moved while nothing is under way. All calls on the worker's thread.
class ClientStream {
public:
    using Socket = boost::asio::ip::tcp::socket;
    using ErrorCode = boost::system::error_code;

    /// `tls`: after its handshake on this socket; null: plain.
    explicit ClientStream(Socket socket, std::unique_ptr<TlsSession> tls = nullptr)
        : socket_(std::move(socket)), tls_(std::move(tls)) {}

    [[nodiscard]] bool is_encrypted() const { return tls_ != nullptr; }
    [[nodiscard]] bool has_client_certificate() const {
        return tls_ && tls_->has_client_certificate();
    }
    [[nodiscard]] const Socket& socket() const { return socket_; }
    [[nodiscard]] Socket& socket() { return socket_; }

    /// Calls `handler(error, count)`; the end of what the peer sends is an error.
    template <class Handler>
    void async_read_some(std::span<char> room, Handler handler) {
        if (tls_) return read_encrypted(room, std::move(handler));
        socket_.async_read_some(boost::asio::buffer(room.data(), room.size()), std::move(handler));
    }

    /// Writes a part of the two pieces, of which one is not empty, then calls `handler(error,
    /// count)`.
    template <class Handler>
    void async_write_some(const std::array<std::string_view, 2>& pieces, Handler handler) {
        if (tls_) return write_encrypted(pieces, 0, std::move(handler));
        socket_.async_write_some(
            std::array{boost::asio::buffer(pieces[0].data(), pieces[0].size()),
                       boost::asio::buffer(pieces[1].data(), pieces[1].size())},
            std::move(handler));
    }
    template <class Handler>
    void async_write_some(std::string_view bytes, Handler handler) {
        if (tls_) return write_encrypted({bytes, {}}, 0, std::move(handler));
        socket_.async_write_some(boost::asio::buffer(bytes.data(), bytes.size()),
                                 std::move(handler));
    }

    /// Ends what is under way with an error; nothing is lost, and more can be read and written.
    void cancel() {
        ErrorCode ignored;
        socket_.cancel(ignored);
    }
    /// Says that all was sent.
    void end_sending();
    /// `is_whole`: nothing of an answer is missing. Else a peer that uses TLS is not told of an
    /// orderly end, by which it knows that something is. Idempotent.
    void close(bool is_whole);

private:
    using Completion = std::function<void(const ErrorCode&, std::size_t)>;

    void read_encrypted(std::span<char> room, Completion done);
    void finish_read(std::span<char> room, Completion done, bool is_own_turn);
    void write_encrypted(std::array<std::string_view, 2> rest, std::size_t written, Completion done,
                         bool is_own_turn = false);
    [[nodiscard]] std::string_view next_record(const std::array<std::string_view, 2>& rest);
    void complete(Completion done, const ErrorCode& ec, std::size_t count, bool is_own_turn);

    Socket socket_;
    std::unique_ptr<TlsSession> tls_;
    std::string joined_;  // the end of one piece and the begin of the next, for one record
};

}  // namespace tune::tracker
