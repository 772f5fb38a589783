#pragma once
// What is known of the points of a finite space: the trials that a later one of the same point may
// take its value from.

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "tuner/sampler/simple/finite_points.h"
#include "tuner/study/trial/trial.h"

namespace tune::tuner {

/// Threads: none inside. Memory: one point a distinct point that completed.
class KnownPoints {
public:
    /// Takes a trial that has ended; only complete ones say something.
    void add(const Trial& trial);

    /// The first trial that completed at this point.
    [[nodiscard]] std::optional<std::uint64_t> find(const Point& point) const;

private:
    std::unordered_map<Point, std::uint64_t, PointHash, PointEqual> trials_;
};

}  // namespace tune::tuner
