#include "tracker/store/metrics/metric_block.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace tune::tracker::metric_block_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

std::vector<Point> random_points(std::mt19937_64& random, std::size_t count) {
    std::vector<Point> points(count);
    for (Point& point : points) {
        point.timestamp_ms = static_cast<std::int64_t>(random() >> (random() % 64));
        point.step = static_cast<std::int64_t>(random() >> (random() % 64));
        const std::uint64_t bits = random();
        std::memcpy(&point.value, &bits, sizeof(bits));
        if (!std::isfinite(point.value)) point.value = kNan;
    }
    return points;
}

void expect_equal(const std::vector<Point>& a, const std::vector<Point>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
        EXPECT_EQ(a[i].timestamp_ms, b[i].timestamp_ms);
        EXPECT_EQ(a[i].step, b[i].step);
        EXPECT_TRUE(a[i].value == b[i].value || (std::isnan(a[i].value) && std::isnan(b[i].value)));
    }
}

TEST(MetricBlock, GivesBackAnyPoints) {
    std::mt19937_64 random(1);
    for (std::size_t count = 0; count < 300; count += 7) {
        const std::vector<Point> points = random_points(random, count);
        std::vector<Point> decoded;
        ASSERT_TRUE(decode_points(bytes_of(encode_points(points)), count, decoded));
        expect_equal(decoded, points);
    }
}

TEST(MetricBlock, AppendingEqualsEncodingTogether) {
    std::mt19937_64 random(2);
    const std::vector<Point> points = random_points(random, 100);
    const std::span<const Point> all = points;
    std::string encoded = encode_points(all.first(60));
    append_points(encoded, points[59], all.subspan(60));
    EXPECT_EQ(encoded, encode_points(points));
}

TEST(MetricBlock, IsSmallForTrainingCurves) {
    std::vector<Point> points;
    for (int i = 0; i < 256; ++i)
        points.push_back({1'700'000'000'000 + i * 1'250, i, 1.0 / (i + 1)});
    EXPECT_LT(encode_points(points).size(), 256u * 12);
}

TEST(MetricBlock, RefusesDamage) {
    std::mt19937_64 random(3);
    const std::string encoded = encode_points(random_points(random, 20));
    std::vector<Point> points;
    for (std::size_t length = 0; length < encoded.size(); ++length) {
        const auto cut = decode_points(bytes_of(encoded.substr(0, length)), 20, points);
        ASSERT_FALSE(cut);
        EXPECT_EQ(cut.error().code, Code::kDataLoss);
    }
    EXPECT_FALSE(decode_points(bytes_of(encoded), 19, points));
    EXPECT_FALSE(decode_points(bytes_of(encoded), 1u << 30, points));
    const std::string endless(40, '\xff');
    EXPECT_FALSE(decode_points(bytes_of(endless), 2, points));
}

TEST(MetricBlock, SummariesMergeLikeWholes) {
    std::mt19937_64 random(4);
    for (int round = 0; round < 100; ++round) {
        const std::vector<Point> points = random_points(random, 1 + random() % 40);
        const std::span<const Point> all = points;
        const std::size_t cut = random() % (points.size() + 1);
        const BlockSummary whole = summarize(all);
        const BlockSummary merged = merge(summarize(all.first(cut)), summarize(all.subspan(cut)));
        EXPECT_EQ(merged.row_count, whole.row_count);
        EXPECT_EQ(merged.nan_count, whole.nan_count);
        EXPECT_EQ(merged.min_step, whole.min_step);
        EXPECT_EQ(merged.max_step, whole.max_step);
        EXPECT_EQ(compare_in_steps(merged.final, whole.final), std::strong_ordering::equal);
        if (whole.nan_count == whole.row_count) continue;
        EXPECT_EQ(merged.min_value, whole.min_value);
        EXPECT_EQ(merged.max_value, whole.max_value);
    }
}

}  // namespace
}  // namespace tune::tracker::metric_block_test
