#pragma once
// Files to sockets by sendfile(2), where nothing encrypts them: the bytes go from the page cache to
// the network without passing through this process.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/system/unique_fd.h"
#include "tracker/api/http/http_types.h"

namespace tune::tracker {

/// Bytes sent before other connections of the thread have their turn: about 0.2 ms.
inline constexpr std::size_t kFilePieceBytes = 1 << 20;

/// The same for a file that is encrypted, which costs more.
inline constexpr std::size_t kReadPieceBytes = 128 << 10;

/// The rest of a file that is to be sent.
struct FilePart {
    std::shared_ptr<const UniqueFd> file = nullptr;
    std::uint64_t at = 0;
    std::uint64_t end = 0;

    [[nodiscard]] bool is_done() const { return !file || at >= end; }
};

/// What sending came to. Nothing sent and not `failed`: the socket is full.
struct SendOutcome {
    std::size_t sent_bytes = 0;
    /// The peer is gone, the disk has an error, or the file became shorter than announced.
    bool failed = false;
};

/// Whether the next `bytes_max` can be sent without waiting for a disk, as far as its two ends
/// show: a hole between them costs one wait.
[[nodiscard]] bool is_cached(const FilePart& part, std::size_t bytes_max);

/// Sends up to kFilePieceBytes to a non-blocking socket; waits for the disk if it must. The calling
/// thread has SIGPIPE blocked (block_sigpipe).
[[nodiscard]] SendOutcome send_piece(int socket, const FilePart& part);

/// Up to kReadPieceBytes; waits for the disk if it must. Empty: the disk has an error, or the file
/// became shorter than announced.
[[nodiscard]] std::string read_piece(const FilePart& part);

/// sendfile has no MSG_NOSIGNAL: a peer that is gone would end the process.
void block_sigpipe();

/// A second descriptor of the socket, for a thread that sends while the connection may be closed on
/// its own: the number could else belong to somebody new. Empty when there are no descriptors left.
[[nodiscard]] UniqueFd duplicate_socket(int socket);

/// The part of `file` that a request with these headers gets, and the headers that say so, in
/// `response`; `status` is set to 200, 206 or 416 (then the part is empty).
[[nodiscard]] FilePart choose_part(const FileBody& file, const Request& request, Response& response,
                                   int& status);

}  // namespace tune::tracker
