#include "tuner/study/placement/peak_memory.h"

#include <algorithm>
#include <vector>

namespace tune::tuner {

void PeakMemory::note(std::int64_t bytes) {
    if (bytes <= 0) return;
    peaks_.push_back(bytes);
    if (peaks_.size() > kKept) peaks_.pop_front();
    update();
}

void PeakMemory::note_shortage(std::int64_t given) {
    floor_ = std::max(floor_, given + given / 2);
    update();
}

void PeakMemory::update() {
    if (peaks_.size() < kFirst) return;
    std::vector<std::int64_t> sorted(peaks_.begin(), peaks_.end());
    const std::size_t at = (sorted.size() * 95 + 99) / 100 - 1;
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(at),
                     sorted.end());
    estimate_ = std::max(sorted[at] + sorted[at] * 15 / 100, floor_);
}

}  // namespace tune::tuner
