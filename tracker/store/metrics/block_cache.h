#pragma once
// The block of each series that late points fell into last, decoded. A training that resumed and
// logs steps again, or a rank whose clock is behind, writes point after point into one block; to
// see whether a point is there already costs a search in memory then instead of a read.
//
// A full cache gives up one block by chance. A run logs its metrics one after the other, again and
// again: of more of them than there is room for, the one that was used longest ago is the very next
// to be wanted, and so it would be each time; by chance most are still there.

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "tracker/store/metrics/metric_block.h"
#include "tracker/store/metrics/metric_log.h"

namespace tune::tracker {

/// Not thread-safe: belongs to the writer.
class BlockCache {
public:
    /// Series with a block here; 6 kB each, 12 MB at most. A run of a large model logs a norm for
    /// each of its tensors, about a thousand.
    static constexpr std::size_t kBlocksMax = 2'048;

    /// The points of the block whose range holds `point`; nullptr: it is not here. Valid until the
    /// next put().
    [[nodiscard]] const std::vector<Point>* find(const SeriesKey& key, const Point& point) const;
    /// `points`: of a block as it is stored, ordered by compare_in_time.
    void put(const SeriesKey& key, std::span<const Point> points);
    void clear();

private:
    struct Slot {
        SeriesKey key;
        std::vector<Point> points;
    };
    [[nodiscard]] std::size_t slot_of(const SeriesKey& key);

    std::unordered_map<SeriesKey, std::size_t, SeriesKeyHash> places_;  // in slots_
    std::vector<Slot> slots_;
    std::uint32_t random_ = 1;  // state of the generator of victims
};

}  // namespace tune::tracker
