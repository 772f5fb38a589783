#pragma once
// A request to the rendezvous of Horovod's processes, read from the bytes that have come so far.
// Pure. The bytes are anybody's who reaches the port.

#include <cstddef>
#include <string_view>

namespace tune::worker {

/// Bytes of the head of a request, blank line included.
inline constexpr std::size_t kRendezvousHeadMax = 8u << 10;
/// Of a value. A process writes an address of about 140 bytes for each other one.
inline constexpr std::size_t kRendezvousValueMax = 1u << 20;

enum class RendezvousMethod { kGet, kPut, kDelete };

/// Its parts point into the text that was read.
struct RendezvousRequest {
    bool is_whole = false;  ///< false: more bytes have to come, and nothing else is set
    int refusal = 0;        ///< a status of HTTP; 0: it can be answered, and the rest is set
    RendezvousMethod method = RendezvousMethod::kGet;
    std::string_view scope = {};
    std::string_view key = {};
    std::string_view value = {};
};

/// METHOD <prefix>SCOPE/KEY HTTP/1.x, with a body of Content-Length bytes. What does not begin with
/// `prefix` ("/.../") is refused as another attempt's.
[[nodiscard]] RendezvousRequest read_rendezvous_request(std::string_view text,
                                                        std::string_view prefix);

}  // namespace tune::worker
