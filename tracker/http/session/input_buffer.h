#pragma once
// The bytes of a connection between the socket and the parser.

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "tracker/http/session/session_limits.h"

namespace tune::tracker {

/// Bytes are read behind those that are pending and consumed from their front. Starts with
/// kReadBytes; the owner lets it grow where a body comes fast. Not thread-safe.
class InputBuffer {
public:
    InputBuffer() : bytes_(kReadBytes) {}

    /// What was read and not consumed; valid until the next call that is not const.
    [[nodiscard]] std::string_view pending() const {
        return {bytes_.data() + begin_, end_ - begin_};
    }
    void consume(std::size_t count) { begin_ += count; }
    void drop_pending() { begin_ = end_ = 0; }

    /// Where the next read goes, never empty; pending bytes may move.
    [[nodiscard]] std::span<char> room();
    /// The read into room() brought so many bytes.
    void add(std::size_t count);
    /// Whether the last read filled all of its room: there may be more at once.
    [[nodiscard]] bool was_filled() const { return was_filled_; }

    [[nodiscard]] std::size_t size() const { return bytes_.size(); }
    /// REQUIRES: `size` is not less than size().
    void grow(std::size_t size) { bytes_.resize(size); }
    /// Holds no memory until the next room(), unless bytes are pending.
    void release() {
        if (begin_ == end_) std::vector<char>().swap(bytes_);
    }
    /// Back to kReadBytes, or to what is pending.
    void shrink();

private:
    std::vector<char> bytes_;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    std::size_t offered_ = 0;
    bool was_filled_ = false;
};

}  // namespace tune::tracker
