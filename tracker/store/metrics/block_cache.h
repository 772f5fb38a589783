#pragma once
// The block of each series that late points fell into last, decoded. A training that resumed and
// logs steps again, or a rank whose clock is behind, writes point after point into one block; to
// see whether a point is there already costs a search in memory then instead of a read.

#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include "tracker/store/metrics/metric_block.h"
#include "tracker/store/metrics/metric_log.h"

namespace tune::tracker {

/// Not thread-safe: belongs to the writer.
class BlockCache {
public:
    /// Series with a block here; 6 kB each.
    static constexpr std::size_t kBlocksMax = 1'024;

    /// The points of the block whose range holds `point`; nullptr: it is not here. Valid until the
    /// next put().
    [[nodiscard]] const std::vector<Point>* find(const SeriesKey& key, const Point& point) const;
    /// `points`: of a block as it is stored, ordered by compare_in_time.
    void put(const SeriesKey& key, std::span<const Point> points);
    void clear() { blocks_.clear(); }

private:
    std::unordered_map<SeriesKey, std::vector<Point>, SeriesKeyHash> blocks_;
};

}  // namespace tune::tracker
