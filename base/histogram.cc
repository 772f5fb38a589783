#include "base/histogram.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace tune {

void HistogramCounts::add(const HistogramCounts& other) {
    if (buckets.empty()) {
        *this = other;
        return;
    }
    TUNE_CHECK(buckets.size() == other.buckets.size(), "only equal bounds add up");
    for (std::size_t i = 0; i < buckets.size(); ++i) buckets[i] += other.buckets[i];
    sum += other.sum;
}

std::uint64_t HistogramCounts::count() const {
    return std::accumulate(buckets.begin(), buckets.end(), std::uint64_t{0});
}

Histogram::Histogram(std::span<const double> bounds) : bounds_(bounds) {
    TUNE_CHECK(bounds.size() <= kBoundsMax, "more bounds than a histogram holds");
    TUNE_CHECK(std::is_sorted(bounds.begin(), bounds.end()), "bounds must ascend");
}

void Histogram::observe(double value) {
    const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), value);
    buckets_[static_cast<std::size_t>(at - bounds_.begin())].fetch_add(1,
                                                                       std::memory_order_relaxed);
    sum_.fetch_add(value, std::memory_order_relaxed);
}

HistogramCounts Histogram::counts() const {
    HistogramCounts counts{bounds_, {}, sum_.load(std::memory_order_relaxed)};
    counts.buckets.resize(bounds_.size() + 1);
    for (std::size_t i = 0; i < counts.buckets.size(); ++i)
        counts.buckets[i] = buckets_[i].load(std::memory_order_relaxed);
    return counts;
}

}  // namespace tune
