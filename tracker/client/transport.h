#pragma once
// How the client's requests travel: over plain HTTP (connection.h) or TLS (curl_transport.h).

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tune::tracker {

/// Headers of an answer beyond this end the exchange.
inline constexpr std::size_t kAnswerHeaderBytesMax = 64u << 10;
/// Of an error's text this much is kept when the body was to go to a sink.
inline constexpr std::size_t kErrorBodyBytesMax = 64u << 10;

/// Where the bytes of a request's body come from.
class BodySource {
public:
    virtual ~BodySource() = default;
    /// All bytes that next() will give, after rewind().
    [[nodiscard]] virtual std::uint64_t size_bytes() const = 0;
    /// The next piece, valid until the next call; empty at the end.
    [[nodiscard]] virtual Result<std::string_view> next() = 0;
    virtual void rewind() = 0;
};

struct HttpResponse {
    int status = 0;
    std::string body;
    /// Seconds of a Retry-After header; -1 without one.
    int retry_after_s = -1;
    /// Where a redirect leads.
    std::string location = {};
    /// Bytes that a sink was given; its error, which ends the exchange.
    std::uint64_t sunk_bytes = 0;
    std::optional<Error> sink_error = {};
};

/// How an attempt without an answer ended.
enum class Failure {
    kUnreachable,  ///< no connection, or it broke: worth another attempt
    kTimeout,
    kCancelled,
    kUntrusted,  ///< the server could not prove who it is; another attempt cannot either
    kBroken,     ///< the answer is no HTTP or too large, or the body's source failed
};

struct AttemptError {
    Failure failure = Failure::kUnreachable;
    std::string text;
};

struct Outgoing {
    std::string_view method;
    std::string_view target;
    std::string_view content_type;     // empty: no body
    std::string_view content_range;    // the header's value; empty: none
    std::string_view authorization;    // the same
    std::string_view idempotency_key;  // the same
    BodySource* body = nullptr;
    int timeout_ms = 0;
    /// The time-out counts anew for each piece of the body.
    bool timeout_is_per_piece = false;
    /// Where the body of a successful answer goes instead of HttpResponse::body.
    const std::function<Result<void>(std::string_view)>* sink = nullptr;
};

/// What every request says of its sender, and how much of an answer it takes.
struct TransportOptions {
    std::string user_agent;
    std::size_t answer_bytes_max = 0;
};

/// One kept-alive connection, driven by the calling thread. Not thread-safe except for cancel() and
/// is_cancelled().
class Transport {
public:
    virtual ~Transport() = default;

    /// Sends the request and waits for the answer, connecting first when necessary. A kept-alive
    /// connection that turns out to be closed is replaced once without being an error.
    [[nodiscard]] virtual bool exchange(const Outgoing& request, HttpResponse& answer,
                                        AttemptError& error) = 0;
    /// Ends the running and all later exchanges. Thread-safe, does not block.
    virtual void cancel() = 0;
    [[nodiscard]] virtual bool is_cancelled() const = 0;
};

}  // namespace tune::tracker
