#include "tracker/http/session/input_buffer.h"

#include <algorithm>

namespace tune::tracker {

std::span<char> InputBuffer::room() {
    if (begin_ == end_) {
        begin_ = end_ = 0;
        if (bytes_.empty()) bytes_.resize(kReadBytes);  // it was released
    } else if (begin_ > 0 && end_ == bytes_.size()) {
        std::copy(bytes_.begin() + static_cast<std::ptrdiff_t>(begin_),
                  bytes_.begin() + static_cast<std::ptrdiff_t>(end_), bytes_.begin());
        end_ -= begin_;
        begin_ = 0;
    }
    // Headers are limited by the parser, bodies leave the buffer as they come: doubling ends soon.
    if (end_ == bytes_.size()) bytes_.resize(bytes_.size() * 2);
    offered_ = bytes_.size() - end_;
    return {bytes_.data() + end_, offered_};
}

void InputBuffer::add(std::size_t count) {
    was_filled_ = count == offered_;
    end_ += count;
}

void InputBuffer::shrink() {
    if (bytes_.size() == kReadBytes) return;
    std::vector<char> rest(pending().begin(), pending().end());
    begin_ = 0;
    end_ = rest.size();
    rest.resize(std::max(rest.size(), kReadBytes));
    bytes_ = std::move(rest);
}

}  // namespace tune::tracker
