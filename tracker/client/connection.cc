// A synchronous client on an event loop of its own: step() starts one asynchronous operation and
// runs it to its end on this thread. The deadline and cancel() close the socket, which ends the
// operation; its handler refers to the stack frame of step(), so it is always awaited.

#include "tracker/client/connection.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <charconv>
#include <chrono>
#include <optional>

namespace tune::tracker {
namespace {

namespace http = boost::beast::http;
using boost::asio::ip::tcp;
using boost::system::error_code;
using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kSinkPieceBytes = 256 << 10;

}  // namespace

struct ClientConnection::State {
    State(UrlParts parts, TransportOptions transport_options)
        : url(std::move(parts)),
          options(std::move(transport_options)),
          socket(context),
          resolver(context) {}

    template <class Start>
    error_code step(Start start);
    error_code connect();
    error_code send(const Outgoing& request, AttemptError& error);
    error_code receive(const Outgoing& request, HttpResponse& answer);
    error_code receive_to_sink(const Outgoing& request, HttpResponse& answer);
    void drop();
    void set_deadline(const Outgoing& request) {
        deadline = SteadyClock::now() + std::chrono::milliseconds(request.timeout_ms);
    }

    UrlParts url;
    TransportOptions options;
    boost::asio::io_context context{1};
    tcp::socket socket;
    tcp::resolver resolver;
    boost::beast::flat_buffer buffer;
    SteadyClock::time_point deadline;
    bool timed_out = false;
    bool got_any_byte = false;
    std::atomic<bool> cancelled{false};
};

/// Starts one asynchronous operation and runs it to its end on this thread; at the deadline or on
/// cancel() the socket is closed, which ends the operation. The handler refers to this stack frame,
/// so it is always awaited.
template <class Start>
error_code ClientConnection::State::step(Start start) {
    std::optional<error_code> result;
    start([&result](const error_code& ec, auto&&...) { result = ec; });
    while (!result) {
        if (context.stopped()) context.restart();
        if (cancelled || SteadyClock::now() >= deadline) {
            timed_out = !cancelled;
            drop();
            resolver.cancel();
            if (context.run_one() == 0) context.restart();
        } else {
            context.run_one_until(deadline);
        }
    }
    return *result;
}

void ClientConnection::State::drop() {
    error_code ignored;
    socket.close(ignored);
    buffer.clear();
}

error_code ClientConnection::State::connect() {
    drop();
    tcp::resolver::results_type found;
    error_code ec = step([&](auto done) {
        resolver.async_resolve(url.host, url.port,
                               [&found, done](const error_code& failed, auto results) {
                                   found = results;
                                   done(failed);
                               });
    });
    if (ec) return ec;
    ec = step([&](auto done) { boost::asio::async_connect(socket, found, done); });
    if (ec) return ec;
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    socket.set_option(boost::asio::socket_base::keep_alive(true), ignored);
    return {};
}

error_code ClientConnection::State::send(const Outgoing& request, AttemptError& error) {
    std::string head(request.method);
    head.append(" ").append(url.prefix).append(request.target).append(" HTTP/1.1\r\nHost: ");
    head.append(url.authority).append("\r\nUser-Agent: ").append(options.user_agent);
    if (!request.authorization.empty())
        head.append("\r\nAuthorization: ").append(request.authorization);
    if (!request.idempotency_key.empty())
        head.append("\r\nIdempotency-Key: ").append(request.idempotency_key);
    head.append("\r\nAccept: */*\r\n");
    if (request.body) {
        head.append("Content-Type: ").append(request.content_type);
        if (!request.content_range.empty())
            head.append("\r\nContent-Range: ").append(request.content_range);
        head.append("\r\nContent-Length: ").append(std::to_string(request.body->size_bytes()));
        head.append("\r\n");
        request.body->rewind();
    }
    head.append("\r\n");
    std::uint64_t left = request.body ? request.body->size_bytes() : 0;
    bool first = true;
    while (first || left > 0) {
        std::string_view piece;
        if (left > 0) {
            Result<std::string_view> next = request.body->next();
            if (!next || next->empty() || next->size() > left) {
                error = {Failure::kBroken, next ? "the file changed its size while it was sent"
                                                : next.error().text()};
                drop();
                return {};
            }
            piece = *next;
            left -= piece.size();
        }
        const std::array<boost::asio::const_buffer, 2> buffers = {
            boost::asio::const_buffer(head.data(), first ? head.size() : 0),
            boost::asio::const_buffer(piece.data(), piece.size())};
        first = false;
        if (request.timeout_is_per_piece) set_deadline(request);
        const error_code ec =
            step([&](auto done) { boost::asio::async_write(socket, buffers, done); });
        if (ec) return ec;
    }
    if (request.timeout_is_per_piece) set_deadline(request);
    return {};
}

error_code ClientConnection::State::receive(const Outgoing& request, HttpResponse& answer) {
    for (;;) {
        http::response_parser<http::string_body> parser;
        parser.body_limit(options.answer_bytes_max);
        parser.header_limit(static_cast<std::uint32_t>(kAnswerHeaderBytesMax));
        if (request.method == "HEAD") parser.skip(true);
        const error_code ec =
            step([&](auto done) { http::async_read(socket, buffer, parser, done); });
        got_any_byte = parser.got_some();
        if (ec) return ec;
        if (parser.get().result_int() / 100 == 1) continue;
        answer.status = static_cast<int>(parser.get().result_int());
        answer.retry_after_s = -1;
        answer.location = std::string(parser.get()[http::field::location]);
        const auto after = parser.get()[http::field::retry_after];
        std::from_chars(after.data(), after.data() + after.size(), answer.retry_after_s);
        const bool keep_alive = parser.keep_alive();
        answer.body = std::move(parser.get().body());
        if (!keep_alive) drop();
        return {};
    }
}

/// The body goes to the sink piece by piece; that of an error is kept, as it is short.
error_code ClientConnection::State::receive_to_sink(const Outgoing& request, HttpResponse& answer) {
    http::response_parser<http::buffer_body> parser;
    parser.body_limit(boost::none);
    parser.header_limit(static_cast<std::uint32_t>(kAnswerHeaderBytesMax));
    error_code ec = step([&](auto done) { http::async_read_header(socket, buffer, parser, done); });
    got_any_byte = parser.got_some();
    if (ec) return ec;
    answer.status = static_cast<int>(parser.get().result_int());
    answer.location = std::string(parser.get()[http::field::location]);
    std::string piece(kSinkPieceBytes, '\0');
    while (!parser.is_done()) {
        parser.get().body().data = piece.data();
        parser.get().body().size = piece.size();
        set_deadline(request);
        ec = step([&](auto done) { http::async_read_some(socket, buffer, parser, done); });
        if (ec == http::error::need_buffer) ec = {};
        if (ec) return ec;
        const std::string_view got(piece.data(), piece.size() - parser.get().body().size);
        if (answer.status / 100 != 2) {
            answer.body += got.substr(
                0, kErrorBodyBytesMax - std::min(kErrorBodyBytesMax, answer.body.size()));
            continue;
        }
        answer.sunk_bytes += got.size();
        if (got.empty()) continue;
        if (Result<void> taken = (*request.sink)(got); !taken) {
            answer.sink_error = std::move(taken).error();
            drop();
            return {};
        }
    }
    if (!parser.keep_alive()) drop();
    return {};
}

ClientConnection::ClientConnection(UrlParts url, TransportOptions options)
    : state_(std::make_unique<State>(std::move(url), std::move(options))) {}

ClientConnection::~ClientConnection() = default;

bool ClientConnection::exchange(const Outgoing& request, HttpResponse& answer,
                                AttemptError& error) {
    State& s = *state_;
    s.timed_out = false;
    s.set_deadline(request);
    for (;;) {
        const bool reused = s.socket.is_open();
        error = {};
        error_code ec = reused ? error_code{} : s.connect();
        s.got_any_byte = false;
        if (!ec) {
            ec = s.send(request, error);
            if (!error.text.empty()) return false;
            // A server that refuses an upload answers before it has all of it and closes.
            if (!ec || (s.socket.is_open() && request.body)) {
                const error_code read_ec = request.sink != nullptr
                                               ? s.receive_to_sink(request, answer)
                                               : s.receive(request, answer);
                if (!read_ec) {
                    if (ec) s.drop();
                    return true;
                }
                ec = ec ? ec : read_ec;
            }
        }
        s.drop();
        if (s.cancelled) {
            error = {Failure::kCancelled, "cancelled"};
            return false;
        }
        if (s.timed_out) {
            error = {Failure::kTimeout,
                     "no answer within " + std::to_string(request.timeout_ms) + " ms"};
            return false;
        }
        if (reused && !s.got_any_byte) continue;
        const bool is_http_fault =
            ec.category() == http::make_error_code(http::error::bad_value).category() &&
            ec != http::error::end_of_stream && ec != http::error::partial_message;
        error = {is_http_fault ? Failure::kBroken : Failure::kUnreachable, ec.message()};
        return false;
    }
}

void ClientConnection::cancel() {
    state_->cancelled = true;
    // Wakes the thread that waits in step(); it closes the socket itself.
    boost::asio::post(state_->context, [] {});
}

bool ClientConnection::is_cancelled() const {
    return state_->cancelled;
}

}  // namespace tune::tracker
