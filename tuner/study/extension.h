#pragma once
// The trials of a study on their way from one space into another. It is made a part at a time, so
// that a study of many trials may be read in between by others.

#include <cstddef>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tuner/space/space.h"

namespace tune::tuner {

/// Holds the points of the first count() trials in the space `to`. Not thread-safe.
class Extension {
public:
    Extension() = default;
    Extension(Space from, Space to) : from_(std::move(from)), to_(std::move(to)) {}

    [[nodiscard]] std::size_t count() const { return points_.size(); }
    /// Whether what it holds leads from one of these spaces to the other.
    [[nodiscard]] bool leads(const Space& from, const Space& to) const {
        return from_ == from && to_ == to;
    }
    /// Brings the trial of the next number with it, which need not be the study's own. Errors:
    /// kResourceConflict naming what does not fit.
    Result<void> add(const Point& point, const Point& fixed);
    /// Point and given values of a trial, once. REQUIRES: number < count().
    [[nodiscard]] std::pair<Point, Point> take(std::size_t number);

private:
    Space from_;
    Space to_;
    std::vector<Point> points_;
    std::vector<Point> fixed_;
};

}  // namespace tune::tuner
