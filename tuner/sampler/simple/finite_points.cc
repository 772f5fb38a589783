// All points of a finite space, depth first over the parameters with parents before children: so
// whether a child exists is known when its turn comes, and each point is made exactly once. A
// partial point that breaks a rule is given up with all its completions, which is right because a
// rule is never broken for lack of a value. Both the points and the combinations that are looked at
// are bounded, as products of levels grow beyond any memory; "too many" is an answer of its own: a
// grid is then refused, other samplers draw instead of listing.

#include "tuner/sampler/simple/finite_points.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "tuner/sampler/axis.h"

namespace tune::tuner {
namespace {

/// Combinations, whole or partial, that are held to the rules at most: forbidden ones count for
/// nothing in the list, and must not take for ever.
constexpr std::size_t kVisitsMax = 20 * kListedPointsMax;

/// Depth first over the parameters, parents before children.
class Walk {
public:
    Walk(const Space& space, const std::vector<std::vector<double>>& levels)
        : space_(space), levels_(levels), point_(space.empty_point()) {}

    /// False when there are too many.
    bool from(std::size_t depth) {
        if (space_.rules() != nullptr) {
            if (++visits_ > kVisitsMax) return false;
            if (space_.is_forbidden(point_)) return true;
        }
        if (depth == space_.size()) {
            if (found.size() == kListedPointsMax) return false;
            found.push_back(point_);
            return true;
        }
        const std::size_t index = space_.parents_first()[depth];
        if (!space_.active(index, point_)) return from(depth + 1);
        for (const double level : levels_[index]) {
            point_[index] = level;
            if (!from(depth + 1)) return false;
        }
        point_[index] = kInactive;
        return true;
    }

    std::vector<Point> found;

private:
    const Space& space_;
    const std::vector<std::vector<double>>& levels_;
    Point point_;
    std::size_t visits_ = 0;
};

}  // namespace

std::optional<std::vector<Point>> list_points(const Space& space,
                                              const std::vector<std::vector<double>>& levels) {
    Walk walk(space, levels);
    if (!walk.from(0)) return std::nullopt;
    return std::move(walk.found);
}

std::vector<double> levels_of(const Parameter& parameter, std::size_t points) {
    std::vector<double> levels;
    const std::uint64_t count = parameter.count();
    if (parameter.is_single()) return {parameter.low};
    if (count > kListedPointsMax || (count == 0 && points == 0)) return levels;
    if (count > 0) {
        const double step = parameter.step > 0 ? parameter.step : 1;
        for (std::uint64_t i = 0; i < count; ++i)
            levels.push_back(parameter.snap(parameter.low + static_cast<double>(i) * step));
        return levels;
    }
    const auto place = [&](double bound) { return parameter.log ? std::log(bound) : bound; };
    if (parameter.spread > 0) {
        // Where the prior expects it: the middles of `points` equal shares.
        const Axis axis = Axis::of(parameter);
        for (std::size_t i = 0; i < points; ++i)
            levels.push_back(parameter.snap(axis.value(
                axis.quantile((static_cast<double>(i) + 0.5) / static_cast<double>(points)))));
        return levels;
    }
    const double low = place(parameter.low);
    const double high = place(parameter.high);
    for (std::size_t i = 0; i < points; ++i) {
        const double share =
            points == 1 ? 0.5 : static_cast<double>(i) / static_cast<double>(points - 1);
        const double at = low + (high - low) * share;
        levels.push_back(parameter.snap(parameter.log ? std::exp(at) : at));
    }
    return levels;
}

std::size_t PointHash::operator()(const Point& point) const {
    std::uint64_t hash = 0xCBF29CE484222325u;
    for (const double value : point) {
        const std::uint64_t bits =
            is_active(value) ? std::bit_cast<std::uint64_t>(value + 0.0) : ~std::uint64_t{0};
        hash = (hash ^ bits) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    return static_cast<std::size_t>(hash);
}

bool PointEqual::operator()(const Point& a, const Point& b) const {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
        return x == y || (!is_active(x) && !is_active(y));
    });
}

}  // namespace tune::tuner
