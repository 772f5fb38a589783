#pragma once
// One kept-alive HTTP connection of the client, driven by the calling thread.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tracker/client/url_parts.h"

namespace tune::tracker {

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

struct HttpAnswer {
    int status = 0;
    std::string body;
    /// Seconds of a Retry-After header; -1 without one.
    int retry_after_s = -1;
    /// Bytes that a sink was given; its error, which ends the exchange.
    std::uint64_t sunk_bytes = 0;
    std::optional<Error> sink_error = {};
};

/// How an attempt without an answer ended.
enum class Failure {
    kUnreachable,  ///< no connection, or it broke: worth another attempt
    kTimeout,
    kCancelled,
    kBroken,  ///< the answer is no HTTP or too large, or the body's source failed
};

struct AttemptError {
    Failure failure = Failure::kUnreachable;
    std::string text;
};

/// Not thread-safe except for cancel().
class ClientConnection {
public:
    ClientConnection(UrlParts url, std::string user_agent, std::size_t answer_bytes_max);
    ~ClientConnection();
    ClientConnection(const ClientConnection&) = delete;
    ClientConnection& operator=(const ClientConnection&) = delete;

    struct Outgoing {
        std::string_view method;
        std::string_view target;
        std::string_view content_type;  // empty: no body
        BodySource* body = nullptr;
        int timeout_ms = 0;
        /// The time-out counts anew for each piece of the body.
        bool timeout_is_per_piece = false;
        /// Where the body of a successful answer goes instead of HttpAnswer::body.
        const std::function<Result<void>(std::string_view)>* sink = nullptr;
    };

    /// Sends the request and waits for the answer, connecting first when necessary. A kept-alive
    /// connection that turns out to be closed is replaced once without being an error.
    [[nodiscard]] bool exchange(const Outgoing& request, HttpAnswer& answer, AttemptError& error);

    /// Ends the running and all later exchanges. Thread-safe, does not block.
    void cancel();
    [[nodiscard]] bool is_cancelled() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace tune::tracker
