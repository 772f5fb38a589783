#pragma once

#include <cstdint>
#include <string_view>

namespace tune::tracker {

/// The bytes [begin, end) of a file that a Range header asks for.
struct ByteRange {
    enum class Kind { kWhole, kPart, kUnsatisfiable };
    Kind kind = Kind::kWhole;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
};

/// Reads "bytes=a-b", "bytes=a-", "bytes=-n". Anything else, also several ranges, means the whole
/// file (RFC 9110, 14.2 allows ignoring Range).
[[nodiscard]] ByteRange parse_byte_range(std::string_view header, std::uint64_t size_bytes);

/// Whether an If-None-Match header holds `etag` (weak comparison) or is "*".
[[nodiscard]] bool etag_listed(std::string_view if_none_match, std::string_view etag);

}  // namespace tune::tracker
