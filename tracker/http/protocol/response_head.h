#pragma once
// The status line and headers of a response as bytes.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tracker/api/http/http_types.h"

namespace tune::tracker {

struct HeadOptions {
    int status = 200;
    /// Nothing: the body ends with the connection (event streams).
    std::optional<std::uint64_t> content_length;
    bool keep_alive = true;
};

/// Appends the head of `response`, with the headers that every answer carries (security, no
/// caching unless the response says otherwise) to `out`. Line breaks in header values are dropped.
void append_head(std::string& out, const Response& response, const HeadOptions& options);

/// The answer to bytes that are no request of ours; a 405 names the methods that the server knows.
[[nodiscard]] Response parse_error_response(int status, std::string text);

/// "Not Found" and the like.
[[nodiscard]] std::string_view reason_phrase(int status);

}  // namespace tune::tracker
