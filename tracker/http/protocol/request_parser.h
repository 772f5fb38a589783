#pragma once
// HTTP/1.1 requests out of a byte stream, piece by piece. Boost.Beast does the grammar; this class
// puts the parts where they belong, so that nothing is copied twice.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tracker/api/http/http_types.h"

namespace tune::tracker {

/// One connection's parser. Not thread-safe.
class RequestParser {
public:
    enum class Progress {
        kNeedMore,  ///< all usable input is consumed
        kHeader,    ///< request() is there except for the body; decide on it, then continue
        kChunk,     ///< chunk() holds the next piece of the body
        kDone,      ///< the request is whole
        kError,     ///< see error_status(); the stream is of no further use
    };

    explicit RequestParser(std::size_t header_bytes_max);
    ~RequestParser();

    /// Begins the next request.
    void reset();

    /// Reads from `input` until something happens; `consumed` is set to the bytes it is done with.
    /// Unconsumed bytes must be given again, with more behind them after kNeedMore. chunk() points
    /// into `input`.
    [[nodiscard]] Progress feed(std::string_view input, std::size_t& consumed);

    /// Limits the body that is still to come; call it at kHeader. REQUIRES: a Content-Length above
    /// the limit has been refused by the caller.
    void limit_body(std::uint64_t bytes_max);

    [[nodiscard]] const std::shared_ptr<Request>& request() const;
    [[nodiscard]] std::string_view chunk() const;
    [[nodiscard]] bool keep_alive() const;
    /// The client speaks HTTP/1.1. After the header.
    [[nodiscard]] bool understands_chunks() const;
    [[nodiscard]] bool has_body() const;
    [[nodiscard]] bool expects_continue() const;
    /// Whether any byte of a request has been seen since reset().
    [[nodiscard]] bool started() const;
    [[nodiscard]] std::optional<std::uint64_t> content_length() const;
    /// 400, 413, 431, 501 or 505, with a sentence.
    [[nodiscard]] int error_status() const;
    [[nodiscard]] const std::string& error_text() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace tune::tracker
