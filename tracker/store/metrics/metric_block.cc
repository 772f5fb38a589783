// The packed form of a block: per point zigzag varints of the differences of time and step, and the
// value's 8 bytes as they are. Differences wrap around on overflow and back when decoded, so the
// form is exact for every pair of 64-bit numbers. Decoding never reads behind its bytes: damaged
// bytes are kDataLoss, not a crash.

#include "tracker/store/metrics/metric_block.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace tune::tracker {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int kVarintBytesMax = 10;

std::strong_ordering compare_values(double a, double b) {
    const bool is_a_nan = std::isnan(a);
    const bool is_b_nan = std::isnan(b);
    const double left = is_a_nan ? 0 : a;
    const double right = is_b_nan ? 0 : b;
    if (left < right) return std::strong_ordering::less;
    if (left > right) return std::strong_ordering::greater;
    return is_a_nan <=> is_b_nan;
}

// Differences wrap around on overflow and back when decoded.
std::int64_t difference(std::int64_t to, std::int64_t from) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(to) -
                                     static_cast<std::uint64_t>(from));
}

std::int64_t sum(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

std::uint64_t zigzag(std::int64_t value) {
    return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

std::int64_t unzigzag(std::uint64_t value) {
    return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

char* put_varint(char* out, std::uint64_t value) {
    while (value >= 0x80) {
        *out++ = static_cast<char>(static_cast<unsigned char>(value) | 0x80u);
        value >>= 7;
    }
    *out++ = static_cast<char>(value);
    return out;
}

class Reader {
public:
    explicit Reader(std::span<const std::byte> bytes)
        : at_(bytes.data()), end_(at_ + bytes.size()) {}

    /// Adds the next point's differences to `point`. False: the bytes are damaged.
    bool read_point(Point& point) {
        // With room for the longest point, the end is not asked for at each byte.
        const bool is_last = end_ - at_ < kPointBytesMax;
        std::uint64_t by_ms = 0;
        std::uint64_t by_steps = 0;
        if (is_last ? !read_varint<true>(by_ms) || !read_varint<true>(by_steps)
                    : !read_varint<false>(by_ms) || !read_varint<false>(by_steps))
            return false;
        if (is_last && end_ - at_ < static_cast<std::ptrdiff_t>(sizeof(double))) return false;
        std::memcpy(&point.value, at_, sizeof(double));
        at_ += sizeof(double);
        point.timestamp_ms = sum(point.timestamp_ms, unzigzag(by_ms));
        point.step = sum(point.step, unzigzag(by_steps));
        return true;
    }

    bool is_at_end() const { return at_ == end_; }

private:
    static constexpr std::ptrdiff_t kPointBytesMax = 2 * kVarintBytesMax + sizeof(double);

    template <bool kIsChecked>
    bool read_varint(std::uint64_t& bits) {
        for (int i = 0; i < kVarintBytesMax; ++i) {
            if (kIsChecked && at_ == end_) return false;
            const auto byte = static_cast<std::uint64_t>(*at_++);
            bits |= (byte & 0x7f) << (7 * i);
            if ((byte & 0x80) == 0) return true;
        }
        return false;
    }

    const std::byte* at_;
    const std::byte* end_;
};

Error damaged_block() {
    return {Code::kDataLoss, "A block of metric history in the database is damaged."};
}

}  // namespace

std::strong_ordering compare_in_time(const Point& a, const Point& b) {
    if (a.timestamp_ms != b.timestamp_ms) return a.timestamp_ms <=> b.timestamp_ms;
    if (a.step != b.step) return a.step <=> b.step;
    return compare_values(a.value, b.value);
}

std::strong_ordering compare_in_steps(const Point& a, const Point& b) {
    if (a.step != b.step) return a.step <=> b.step;
    if (a.timestamp_ms != b.timestamp_ms) return a.timestamp_ms <=> b.timestamp_ms;
    return compare_values(a.value, b.value);
}

BlockSummary summarize(std::span<const Point> points) {
    if (points.empty()) return {};
    BlockSummary summary{static_cast<std::int64_t>(points.size()),
                         0,
                         points[0].step,
                         points[0].step,
                         kNan,
                         kNan,
                         points[0]};
    for (const Point& point : points) {
        summary.min_step = std::min(summary.min_step, point.step);
        summary.max_step = std::max(summary.max_step, point.step);
        // Most points come in the order of steps.
        if (point.step > summary.final.step || compare_in_steps(summary.final, point) < 0)
            summary.final = point;
        if (std::isnan(point.value)) {
            ++summary.nan_count;
            continue;
        }
        // Also true of NaN, which stands for no value yet.
        if (!(summary.min_value <= point.value)) summary.min_value = point.value;
        if (!(summary.max_value >= point.value)) summary.max_value = point.value;
    }
    return summary;
}

BlockSummary merge(const BlockSummary& a, const BlockSummary& b) {
    if (a.row_count == 0) return b;
    if (b.row_count == 0) return a;
    BlockSummary both;
    both.row_count = a.row_count + b.row_count;
    both.nan_count = a.nan_count + b.nan_count;
    both.min_step = std::min(a.min_step, b.min_step);
    both.max_step = std::max(a.max_step, b.max_step);
    // fmin and fmax ignore a NaN on one side.
    both.min_value = std::fmin(a.min_value, b.min_value);
    both.max_value = std::fmax(a.max_value, b.max_value);
    both.final = compare_in_steps(a.final, b.final) < 0 ? b.final : a.final;
    return both;
}

std::string encode_points(std::span<const Point> points) {
    std::string encoded;
    append_points(encoded, Point{}, points);
    return encoded;
}

void append_points(std::string& encoded, const Point& last, std::span<const Point> points) {
    const std::size_t old_bytes = encoded.size();
    encoded.resize(old_bytes + points.size() * (2 * kVarintBytesMax + sizeof(double)));
    char* out = encoded.data() + old_bytes;
    Point before = last;
    for (const Point& point : points) {
        out = put_varint(out, zigzag(difference(point.timestamp_ms, before.timestamp_ms)));
        out = put_varint(out, zigzag(difference(point.step, before.step)));
        const double value = std::isnan(point.value) ? kNan : point.value;
        std::memcpy(out, &value, sizeof(double));
        out += sizeof(double);
        before = point;
    }
    encoded.resize(static_cast<std::size_t>(out - encoded.data()));
}

Result<void> decode_points(std::span<const std::byte> encoded, std::size_t count,
                           std::vector<Point>& points) {
    if (encoded.size() > kBlockBytesMax || count > kBlockBytesMax) return damaged_block();
    Reader reader(encoded);
    const std::size_t first = points.size();
    points.resize(first + count);
    Point point;
    for (std::size_t i = 0; i < count; ++i) {
        if (!reader.read_point(point)) return damaged_block();
        points[first + i] = point;
    }
    if (!reader.is_at_end()) return damaged_block();
    return {};
}

}  // namespace tune::tracker
