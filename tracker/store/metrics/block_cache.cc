#include "tracker/store/metrics/block_cache.h"

namespace tune::tracker {

const std::vector<Point>* BlockCache::find(const SeriesKey& key, const Point& point) const {
    const auto found = blocks_.find(key);
    if (found == blocks_.end()) return nullptr;
    const std::vector<Point>& points = found->second;
    if (is_before(point, points.front()) || is_before(points.back(), point)) return nullptr;
    return &points;
}

void BlockCache::put(const SeriesKey& key, std::span<const Point> points) {
    if (points.empty()) return;
    if (blocks_.size() >= kBlocksMax && !blocks_.contains(key)) blocks_.clear();
    blocks_[key].assign(points.begin(), points.end());
}

}  // namespace tune::tracker
