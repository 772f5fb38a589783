#pragma once
// Points of one metric of one run, packed: varint differences of time and step, raw doubles. About
// 11 bytes per point instead of 100 as rows of a table.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace tune::tracker {

/// Points in one block: about 2.9 kB, so that a block is one page of the database.
inline constexpr std::size_t kBlockPointsMax = 256;
/// Points kept beside the latest value; few, because that row is read by every search.
inline constexpr std::size_t kTailPointsMax = 16;
/// A block's bytes at most: 28 a point and a header. More is damage.
inline constexpr std::size_t kBlockBytesMax = 64u << 10;

struct Point {
    std::int64_t timestamp_ms = 0;
    std::int64_t step = 0;
    double value = 0;  // finite or NaN
};

/// The order of histories: (timestamp, step, value, is_nan) with NaN as the value 0, as in MLflow's
/// primary key. Two points that are equal in it are one point logged twice.
[[nodiscard]] std::strong_ordering compare_in_time(const Point& a, const Point& b);
/// The order that chooses the latest value, and of samples: (step, timestamp, value, is_nan).
[[nodiscard]] std::strong_ordering compare_in_steps(const Point& a, const Point& b);

[[nodiscard]] inline bool is_before(const Point& a, const Point& b) {
    return compare_in_time(a, b) < 0;
}

/// What can be known of points without looking at each.
struct BlockSummary {
    std::int64_t row_count = 0;
    std::int64_t nan_count = 0;
    std::int64_t min_step = 0;
    std::int64_t max_step = 0;
    double min_value = 0;  // NaN if all are
    double max_value = 0;
    Point final;  // greatest by compare_in_steps
};

[[nodiscard]] BlockSummary summarize(std::span<const Point> points);
/// As if both had been summarized together; `a` may be empty (row_count 0).
[[nodiscard]] BlockSummary merge(const BlockSummary& a, const BlockSummary& b);

/// Bytes of `points` in any order.
[[nodiscard]] std::string encode_points(std::span<const Point> points);
/// Adds `points` to `encoded`, whose last point is `last`.
void append_points(std::string& encoded, const Point& last, std::span<const Point> points);
/// Appends the `count` points to `points`. Errors: kDataLoss if the bytes are damaged.
[[nodiscard]] Result<void> decode_points(std::span<const std::byte> encoded, std::size_t count,
                                         std::vector<Point>& points);

}  // namespace tune::tracker
