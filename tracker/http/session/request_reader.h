#pragma once
// The receiving half of a session: bytes of the connection -> requests with their bodies.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "tracker/http/protocol/request_parser.h"
#include "tracker/http/session/admission.h"
#include "tracker/http/session/client_stream.h"
#include "tracker/http/session/input_buffer.h"
#include "tracker/http/session/session_events.h"
#include "tracker/http/session/session_limits.h"
#include "tracker/http/worker.h"

namespace tune::tracker {

/// All calls on the worker's thread. Owned by the session, which outlives every operation
/// (SessionEvents::keep_alive).
class RequestReader {
public:
    RequestReader(ClientStream& stream, std::shared_ptr<Worker> worker,
                  std::shared_ptr<ServerContext> context, const Endpoints& endpoints,
                  SessionEvents& session);

    /// Reads a request, up to on_request, on_refused or on_broken.
    void start();
    /// The same for the one after an answered request; what the client sent ahead is used first.
    /// Closes by on_broken where nothing came yet and the worker is draining.
    void start_next();
    /// Reads and drops, until the client closes or is silent for kLinger_ms, then on_broken.
    void linger();
    /// Drops the request and its sink; a pending read has no effect any more.
    void stop();
    /// Ends a pending read at once. With stop(), for a request that does not arrive whole.
    void cancel();

    /// Between on_request and the next start: the request, its route and sink.
    [[nodiscard]] const std::shared_ptr<Request>& request() const { return request_; }
    [[nodiscard]] Admission& admission() { return admission_; }
    /// When its head was there. REQUIRES: request().
    [[nodiscard]] std::chrono::steady_clock::time_point received() const { return received_; }
    [[nodiscard]] bool keep_alive() const { return keep_alive_; }
    [[nodiscard]] bool understands_chunks() const { return parser_.understands_chunks(); }
    /// A part of a request is there and more is awaited from the client.
    [[nodiscard]] bool is_receiving() const {
        return state_ == State::kReading && parser_.started();
    }
    /// No byte of a request is there.
    [[nodiscard]] bool is_idle() const { return state_ == State::kReading && !parser_.started(); }

    [[nodiscard]] std::int64_t deadline_ms() const { return deadline_ms_; }
    /// What the body holds of the server's memory; a job that unfolds it makes it grow.
    [[nodiscard]] const std::shared_ptr<MemoryShare>& body_share();
    /// Frees the buffer while nothing is read: a long-poll waits with little.
    void release_buffer() {
        if (state_ == State::kStopped) input_.release();
    }
    /// Gives back what the body and the buffer count in the server's budgets. Idempotent.
    void release_budget();

private:
    enum class State {
        kReading,    // a read of the socket is pending, or its bytes are being parsed
        kPaused,     // until it is known who asks, the sink has taken a piece, or the client got
                     // its 100 Continue
        kStopped,    // the request is whole or given up
        kLingering,  // what comes is dropped
    };
    enum class BodyMode { kCollect, kStream, kDrop };

    void read();
    void on_read(const boost::system::error_code& ec, std::size_t count);
    void parse();
    [[nodiscard]] bool on_header();
    void await_proof();
    void on_proved(std::optional<Response> refusal);
    [[nodiscard]] bool on_admitted();
    [[nodiscard]] bool on_chunk();
    void on_whole();
    [[nodiscard]] bool drop_body();
    void drop_input();
    void send_continue();
    [[nodiscard]] bool collect(std::string_view chunk);
    void stream(std::string_view chunk);
    void resume();
    void refuse(Response response);
    [[nodiscard]] bool body_is_small() const;
    void grow_input();
    void extend_deadline();

    ClientStream& stream_;
    const std::shared_ptr<Worker> worker_;
    const std::shared_ptr<ServerContext> context_;
    const Endpoints& endpoints_;
    SessionEvents& session_;
    RequestParser parser_;

    InputBuffer input_;
    bool has_large_buffer_ = false;

    State state_ = State::kStopped;
    BodyMode body_mode_ = BodyMode::kCollect;
    std::shared_ptr<Request> request_;
    Admission admission_;
    std::chrono::steady_clock::time_point received_;
    bool keep_alive_ = true;
    std::shared_ptr<MemoryShare> body_share_;  // null: the body is small
    std::int64_t deadline_ms_ = kNoDeadline;
    std::int64_t linger_end_ms_ = 0;
};

}  // namespace tune::tracker
