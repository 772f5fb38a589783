#pragma once
// Points of a space as rows of numbers that a kernel can compare. Private to tuner/sampler.

#include <cstddef>
#include <vector>

#include "tuner/sampler/axis.h"
#include "tuner/space/space.h"

namespace tune::tuner {

/// One parameter with more than one value. Numbers lie in [0, 1] (logarithmic where the parameter
/// is, and the share of the prior below the value where it has one); a category is its index,
/// compared for equality only.
struct Feature {
    std::size_t parameter = 0;
    Axis axis;

    [[nodiscard]] bool is_category() const { return axis.kind == Axis::Kind::kCategory; }
    [[nodiscard]] bool is_stepped() const { return axis.kind == Axis::Kind::kStepped; }
};

/// What a switched-off parameter counts as: the middle of its range, or a category of its own. The
/// parents, which differ, keep such points apart from those where it is on.
inline constexpr double kOffNumber = 0.5;
inline constexpr double kOffCategory = -1;

class Encoding {
public:
    explicit Encoding(const Space& space);

    [[nodiscard]] const std::vector<Feature>& features() const { return features_; }
    [[nodiscard]] std::size_t size() const { return features_.size(); }

    /// The row of a point.
    [[nodiscard]] std::vector<double> row(const Point& point) const;

    /// The point nearest to a row: values are put on their grids and what the conditions switch off
    /// is dropped; parameters with one value get it.
    [[nodiscard]] Point point(const std::vector<double>& row) const;

    /// Where an internal value of a number lies; put on its grid and within its bounds first.
    [[nodiscard]] double feature_value(std::size_t feature, double internal) const;

private:
    const Space* space_;
    std::vector<Feature> features_;
    std::vector<std::size_t> feature_of_;  // by parameter; features_.size(): none
};

}  // namespace tune::tuner
