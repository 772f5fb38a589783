#pragma once
// Counts of measured values in fixed buckets, cheap enough for the hot paths, read by /metrics.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tune {

/// What a Histogram held at one moment; sums of several add up, if their bounds are the same.
struct HistogramCounts {
    std::span<const double> bounds;      ///< upper bounds, ascending, included; static storage
    std::vector<std::uint64_t> buckets;  ///< one a bound, and a last one for larger values
    double sum = 0;

    void add(const HistogramCounts& other);
    [[nodiscard]] std::uint64_t count() const;
};

/// Any thread may observe and read; relaxed atomics, so that a reading may miss the newest values
/// and its sum may be a few values ahead of its buckets. Cost of observe: one search of at most
/// kBoundsMax numbers, two atomic additions.
class Histogram {
public:
    static constexpr std::size_t kBoundsMax = 20;

    /// REQUIRES: at most kBoundsMax ascending bounds that outlive the histogram.
    explicit Histogram(std::span<const double> bounds);

    void observe(double value);
    [[nodiscard]] HistogramCounts counts() const;

private:
    std::span<const double> bounds_;
    std::array<std::atomic<std::uint64_t>, kBoundsMax + 1> buckets_{};
    std::atomic<double> sum_{0};
};

/// Seconds from 50 us to 10 s: what a request or an fsync takes.
inline constexpr std::array<double, 17> kSecondsBounds = {
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
    0.05,    0.1,    0.25,    0.5,    1,     2.5,    5,     10};

}  // namespace tune
