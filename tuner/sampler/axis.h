#pragma once
// One parameter as a sampler models it: on a line segment [low, high] that is widened by half a
// step and logarithmic where the parameter is (so that every grid value owns a cell of it), or as a
// set of categories. Private to tuner/sampler.

#include <cstdint>
#include <vector>

#include "tuner/space/space.h"

namespace tune::tuner {

struct Axis {
    enum class Kind { kContinuous, kStepped, kCategory };

    Kind kind = Kind::kContinuous;
    bool log = false;
    double low = 0;        // of the segment
    double high = 0;       // of the segment
    double range = 0;      // high - low
    double value_low = 0;  // of the parameter
    double value_high = 0;
    double step = 0;                  // kStepped
    double categories = 0;            // kCategory: how many
    double center = 0;                // of the normal prior, as a position
    double spread = 0;                // its deviation; 0: uniform
    std::vector<double> shares = {};  // kCategory: running sums of the weights, to 1; empty: alike
    std::uint64_t key = 0;            // names the parameter's stream of random numbers

    /// REQUIRES: the parameter has more than one value.
    [[nodiscard]] static Axis of(const Parameter& parameter);

    /// Internal value -> position on the segment (category: the index itself).
    [[nodiscard]] double position(double internal) const;

    /// Position -> internal value: exp, grid and bounds.
    [[nodiscard]] double value(double position) const;

    /// Where a share `uniform` (in [0, 1)) of the prior lies below: the uniform distribution of the
    /// segment unless the parameter has a prior. REQUIRES: not kCategory.
    [[nodiscard]] double quantile(double uniform) const;

    /// The inverse of quantile.
    [[nodiscard]] double share_below(double at_position) const;

    /// As quantile, for the categories.
    [[nodiscard]] double category_at(double uniform) const;

    /// The prior probability of a category.
    [[nodiscard]] double category_share(double category) const;

    /// The prior kernel of TPE: the user's, or one as wide as the segment in its middle.
    [[nodiscard]] double prior_mean() const { return spread > 0 ? center : 0.5 * (low + high); }
    [[nodiscard]] double prior_width() const { return spread > 0 ? spread : range; }

    /// The cell of a grid value, as positions. REQUIRES: kStepped.
    [[nodiscard]] double cell_low(double internal) const;
    [[nodiscard]] double cell_high(double internal) const;
};

/// The parameter's internal value at a position of its axis, as a trial gets it: on its grid and
/// within its bounds.
[[nodiscard]] double value_at(const Axis& axis, const Parameter& parameter, double position);

}  // namespace tune::tuner
