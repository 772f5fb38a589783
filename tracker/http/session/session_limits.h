#pragma once
// Sizes and times of one connection (session.cc).

#include <cstddef>
#include <cstdint>
#include <limits>

namespace tune::tracker {

inline constexpr std::int64_t kNoDeadline = std::numeric_limits<std::int64_t>::max();

/// The first read buffer; most requests fit.
inline constexpr std::size_t kReadBytes = 4096;
/// The read buffer of a body that comes fast enough to fill the first one.
inline constexpr std::size_t kBodyReadBytes = 32 << 10;
/// The same for kLargeBuffersMax of them: with smaller ones an upload waits for its turns.
inline constexpr std::size_t kTransferBytes = 256 << 10;
/// A refused request's body up to this size is read and dropped, so that the connection lives on.
inline constexpr std::uint64_t kDrainedBodyMax = 64 << 10;
/// After the last answer the rest of what the client sends is read, since closing with unread data
/// would reset the connection and could destroy the answer on its way: until nothing came for the
/// first time, and for the second one at most.
inline constexpr int kLinger_ms = 5000;
inline constexpr int kLingerTotal_ms = 30'000;

}  // namespace tune::tracker
