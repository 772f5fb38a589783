#include "tracker/store/metrics/block_cache.h"

namespace tune::tracker {

const std::vector<Point>* BlockCache::find(const SeriesKey& key, const Point& point) const {
    const auto found = places_.find(key);
    if (found == places_.end()) return nullptr;
    const std::vector<Point>& points = slots_[found->second].points;
    if (is_before(point, points.front()) || is_before(points.back(), point)) return nullptr;
    return &points;
}

void BlockCache::put(const SeriesKey& key, std::span<const Point> points) {
    if (!points.empty()) slots_[slot_of(key)].points.assign(points.begin(), points.end());
}

/// Of the series, or of one that gives way to it.
std::size_t BlockCache::slot_of(const SeriesKey& key) {
    if (const auto found = places_.find(key); found != places_.end()) return found->second;
    std::size_t place = slots_.size();
    if (place < kBlocksMax) {
        slots_.emplace_back();
    } else {
        random_ = random_ * 1'664'525u + 1'013'904'223u;  // Numerical Recipes
        place = (random_ >> 16) % kBlocksMax;
        places_.erase(slots_[place].key);
    }
    slots_[place].key = key;
    places_.emplace(key, place);
    return place;
}

void BlockCache::clear() {
    places_.clear();
    slots_.clear();
}

}  // namespace tune::tracker
