#pragma once
// Fingerprints of runs and models, the same for what a source says and for what the store gives
// back, whatever the order of points and lists. They find errors of ours and of disks; they are no
// proof against somebody who wants two histories to look alike (points are added up).

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "tracker/transfer/source/source.h"

namespace tune::tracker {

/// Sum over all points of one metric.
struct SeriesDigest {
    std::uint64_t count = 0;
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    bool operator==(const SeriesDigest&) const = default;
};

/// Everything of a run but experiment id and artifact URI, which a move changes. 64 bytes per
/// metric.
class RunDigest {
public:
    void add(std::string_view key, std::span<const Point> points);
    [[nodiscard]] std::uint64_t point_count() const { return point_count_; }
    [[nodiscard]] std::size_t series_count() const { return series_.size(); }
    /// The first key whose points differ; empty when none does.
    [[nodiscard]] std::string first_difference(const RunDigest& other) const;
    /// 64 hex digits.
    [[nodiscard]] std::string finish(const SourceRun& run) const;

private:
    std::map<std::string, SeriesDigest, std::less<>> series_;
    std::uint64_t point_count_ = 0;
};

/// Without the metric history: for "has this run changed since?".
[[nodiscard]] std::string stamp_of(const SourceRun& run);
[[nodiscard]] std::string digest_of(const SourceModel& model);
[[nodiscard]] std::string digest_of(const SourceRegisteredModel& model);

}  // namespace tune::tracker
