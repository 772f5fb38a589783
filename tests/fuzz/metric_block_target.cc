// Packed points: any bytes are refused or decoded; what is decoded is packed and decoded to itself.

#include <bit>
#include <cmath>
#include <limits>

#include "tests/fuzz/fuzz.h"
#include "tracker/store/metrics/metric_block.h"

namespace {

std::uint64_t bits_of(double value) {
    return std::bit_cast<std::uint64_t>(value);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tune::fuzz;
    using namespace tune::tracker;
    if (size == 0) return 0;
    const std::size_t count = data[0];
    const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
    std::vector<Point> points;
    const auto decoded = decode_points(bytes, count, points);
    if (!decoded) {
        FUZZ_CHECK(decoded.error().code == tune::Code::kDataLoss);
        return 0;
    }
    FUZZ_CHECK(points.size() == count);
    const std::string packed = encode_points(points);
    std::vector<Point> again;
    FUZZ_CHECK(decode_points(std::as_bytes(std::span(packed)), count, again).has_value());
    FUZZ_CHECK(again.size() == count);
    for (std::size_t i = 0; i < count; ++i) {
        FUZZ_CHECK(again[i].timestamp_ms == points[i].timestamp_ms);
        FUZZ_CHECK(again[i].step == points[i].step);
        // Bit for bit, but that every NaN becomes the one NaN: repeats are found by comparing
        // bytes.
        const double value = std::isnan(points[i].value) ? std::numeric_limits<double>::quiet_NaN()
                                                         : points[i].value;
        FUZZ_CHECK(bits_of(again[i].value) == bits_of(value));
    }
    if (count == 0) return 0;
    // Points added later give the same bytes as points written at once.
    const std::size_t half = 1 + (count - 1) / 2;
    std::string grown = encode_points(std::span(points).first(half));
    append_points(grown, points[half - 1], std::span(points).subspan(half));
    FUZZ_CHECK(grown == packed);
    const BlockSummary whole = summarize(points);
    FUZZ_CHECK(whole.row_count == static_cast<std::int64_t>(count));
    const BlockSummary parts =
        merge(summarize(std::span(points).first(half)), summarize(std::span(points).subspan(half)));
    FUZZ_CHECK(parts.row_count == whole.row_count && parts.nan_count == whole.nan_count);
    FUZZ_CHECK(parts.min_step == whole.min_step && parts.max_step == whole.max_step);
    return 0;
}
