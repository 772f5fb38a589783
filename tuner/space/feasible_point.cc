// A point that no rule forbids, in three steps of growing effort. Rules are arbitrary expressions
// (expression.h), so there is no formula; but nearly all spaces of practice give way at the first.
//
//   draw     up to 1,000 whole points. The first that is allowed is distributed as the draws are,
//            under the condition that it is allowed: rejection sampling, exact
//   repair   from the last of them: a parameter of a broken rule moves to the value, of its bounds
//            and eight drawn ones, that breaks the fewest rules ("min-conflicts": Minton et al.,
//            Artificial Intelligence 58, 1992). A parent may move too, as it decides whether the
//            parameter exists at all
//   spread   repairs end at few places, mostly at bounds. From there each open parameter in turn
//            moves to a value drawn among those that stay allowed: slice sampling with shrinking
//            brackets (Neal, Annals of Statistics 31, 2003), three rounds of it
//
// To tell "none was found" from "there is none", search_feasible_point ends with all combinations
// of the parameters that the rules read, depth first, giving up a partial point as soon as it is
// forbidden: a rule is never broken for lack of a value, so all completions are forbidden too. It
// says kNone only if it has seen everything, and kUnknown where a parameter is continuous or there
// are too many combinations.
//
// Bounded: each step makes at most 2,000,000 / (parameters + length of the rules) checks of a
// point, so that hostile rules cost some 10 ms and no more. Deterministic: all is a function of the
// arguments.

#include "tuner/space/feasible_point.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tuner/space/expression/rules.h"

namespace tune::tuner {
namespace {

/// Checks of a point that the search may make, times what one costs.
constexpr std::size_t kWorkMax = 2'000'000;
constexpr std::uint64_t kDrawsMax = 1000;
constexpr std::uint64_t kRepairsMax = 1000;
/// Values that a repair tries for one parameter, besides its bounds.
constexpr std::uint64_t kValuesTried = 8;
/// Rounds of moves from a repaired point, and values that are tried for one move: each halves what
/// is left of a range, in the mean.
constexpr int kSpreadRounds = 3;
constexpr int kShrinksMax = 40;
/// Turns of the draws that spread a point, apart from those that find it.
constexpr std::uint64_t kSpreadTurn = 1u << 20;
/// Combinations that the exact search looks at.
constexpr std::size_t kVisitsMax = 200'000;

std::uint64_t hashed(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/// A value anywhere in the domain; on the scale of its logarithm where that is what is uniform.
double value_at(const Parameter& parameter, double uniform) {
    if (!parameter.log) {
        return parameter.snap(parameter.low + uniform * (parameter.high - parameter.low));
    }
    const double low = std::log(parameter.low);
    return parameter.snap(std::exp(low + uniform * (std::log(parameter.high) - low)));
}

/// The inverse of value_at.
double share_at(const Parameter& parameter, double value) {
    const double low = parameter.log ? std::log(parameter.low) : parameter.low;
    const double high = parameter.log ? std::log(parameter.high) : parameter.high;
    return ((parameter.log ? std::log(value) : value) - low) / (high - low);
}

/// How many points a search may hold to the rules.
std::size_t checks_of(const Space& space) {
    std::size_t cost = space.size() + 1;
    for (const std::string& clause : space.rules()->texts().forbid) cost += clause.size();
    for (const auto& [name, text] : space.rules()->texts().derive) cost += text.size();
    return std::max<std::size_t>(16, kWorkMax / cost);
}

class Finder {
public:
    Finder(const Space& space, const Point& given, const DrawValue& draw)
        : space_(space), given_(given), draw_(draw), checks_max_(checks_of(space)) {}

    bool is_repaired = false;  ///< what find() found

    std::optional<Point> find() {
        const std::uint64_t draws = std::min<std::uint64_t>(kDrawsMax, checks_max_ / 2);
        Point point;
        is_repaired = false;
        for (turn_ = 0; turn_ < draws; ++turn_) {
            point = settled(space_.empty_point());
            if (!space_.is_forbidden(point)) return point;
        }
        is_repaired = true;
        for (std::uint64_t i = 0; i < kRepairsMax && checks_ < checks_max_; ++i) {
            if (!repair(point)) return std::nullopt;
            if (!space_.is_forbidden(point)) return point;
        }
        return std::nullopt;
    }

    Point spread(Point point) {
        turn_ = kSpreadTurn;
        checks_ = 0;
        for (int round = 0; round < kSpreadRounds; ++round)
            for (const std::size_t index : space_.parents_first())
                if (!is_given(index) && is_active(point[index]) && !space_[index].is_single())
                    move(point, index);
        return point;
    }

private:
    bool is_given(std::size_t index) const {
        return index < given_.size() && is_active(given_[index]);
    }

    /// To a value that is allowed, drawn from a bracket around the one it has; what is forbidden
    /// becomes an end of it.
    void move(Point& point, std::size_t index) {
        const Parameter& parameter = space_[index];
        const double here = share_at(parameter, point[index]);
        double low = 0;
        double high = 1;
        for (int i = 0; i < kShrinksMax && checks_ < checks_max_; ++i) {
            const double drawn = draw_(++turn_, index);
            const double share = low + (high - low) * share_at(parameter, drawn);
            Point moved = point;
            moved[index] = i == 0 ? drawn : value_at(parameter, share);
            moved = settled(moved);
            ++checks_;
            if (!space_.is_forbidden(moved)) {
                point = std::move(moved);
                return;
            }
            (share < here ? low : high) = share;
        }
    }

    /// Fills what the conditions make active, keeping the values that are there.
    Point settled(const Point& from) const {
        Point point = space_.empty_point();
        for (const std::size_t index : space_.parents_first()) {
            if (!space_.active(index, point)) continue;
            point[index] = is_given(index)          ? given_[index]
                           : is_active(from[index]) ? from[index]
                                                    : draw_(turn_, index);
        }
        return point;
    }

    /// Moves one parameter of a broken rule. False if that rule has none that may move.
    bool repair(Point& point) {
        std::vector<std::size_t> movable;
        for (const std::size_t index : space_.rules()->broken_by(point)) {
            // What decides whether a parameter exists can mend a rule about it too.
            movable.push_back(index);
            for (const Condition& condition : space_[index].when)
                movable.push_back(condition.parent);
        }
        std::erase_if(movable, [&](std::size_t index) {
            return is_given(index) || space_[index].is_single() || !is_active(point[index]);
        });
        if (movable.empty()) return false;
        const std::size_t index = movable[hashed(turn_) % movable.size()];
        std::vector<double> values = {space_[index].low, space_[index].high};
        for (std::uint64_t i = 0; i < kValuesTried; ++i) values.push_back(draw_(++turn_, index));
        Point best = point;
        std::size_t fewest = 0;
        bool is_first = true;
        for (std::size_t i = 0; i < values.size(); ++i) {
            // Start anywhere in the list, so that ties do not always go to a bound.
            Point moved = point;
            moved[index] = values[(i + turn_) % values.size()];
            if (moved[index] == point[index]) continue;
            moved = settled(moved);
            const std::size_t broken = space_.rules()->broken_count(moved);
            ++checks_;
            if (!is_first && broken >= fewest) continue;
            is_first = false;
            fewest = broken;
            best = std::move(moved);
        }
        point = std::move(best);
        return true;
    }

    const Space& space_;
    const Point& given_;
    const DrawValue& draw_;
    std::uint64_t turn_ = 0;
    std::size_t checks_ = 0;
    std::size_t checks_max_;
};

/// All combinations of the parameters that matter: those of the rules, and their parents.
class Exhaustion {
public:
    Exhaustion(const Space& space, const Point& given)
        : space_(space), given_(given), visits_max_(std::min(kVisitsMax, checks_of(space))) {
        matters_.assign(space.size(), false);
        for (const std::size_t index : space.rules()->parameters()) matters_[index] = true;
        const std::vector<std::size_t>& order = space.parents_first();
        for (auto at = order.rbegin(); at != order.rend(); ++at) {
            if (!matters_[*at]) continue;
            for (const Condition& condition : space[*at].when) matters_[condition.parent] = true;
        }
    }

    /// `point` becomes the combination that was found.
    Feasibility look(Point& point) {
        for (std::size_t i = 0; i < space_.size(); ++i)
            if (matters_[i] && space_[i].count() == 0 && !is_given(i)) return Feasibility::kUnknown;
        point = space_.empty_point();
        return from(0, point);
    }

private:
    bool is_given(std::size_t index) const {
        return index < given_.size() && is_active(given_[index]);
    }

    Feasibility from(std::size_t depth, Point& point) {
        if (space_.is_forbidden(point)) return Feasibility::kNone;
        while (depth < space_.size() && !is_open(space_.parents_first()[depth], point)) ++depth;
        if (depth == space_.size()) return Feasibility::kSome;
        const std::size_t index = space_.parents_first()[depth];
        const Parameter& parameter = space_[index];
        const std::uint64_t count = is_given(index) ? 1 : parameter.count();
        for (std::uint64_t i = 0; i < count; ++i) {
            if (++visits_ > visits_max_) return Feasibility::kUnknown;
            point[index] =
                is_given(index)
                    ? given_[index]
                    : parameter.snap(parameter.low + static_cast<double>(i) * parameter.step);
            const Feasibility found = from(depth + 1, point);
            if (found != Feasibility::kNone) return found;
        }
        point[index] = kInactive;
        return Feasibility::kNone;
    }

    bool is_open(std::size_t index, const Point& point) const {
        return matters_[index] && space_.active(index, point);
    }

    const Space& space_;
    const Point& given_;
    std::vector<bool> matters_;
    std::size_t visits_ = 0;
    std::size_t visits_max_;
};

}  // namespace

std::optional<Point> find_feasible_point(const Space& space, const Point& given,
                                         const DrawValue& draw, bool is_spread) {
    if (space.rules() == nullptr) {
        Point point = space.empty_point();
        for (const std::size_t index : space.parents_first()) {
            if (!space.active(index, point)) continue;
            const bool is_given = index < given.size() && is_active(given[index]);
            point[index] = is_given ? given[index] : draw(0, index);
        }
        return point;
    }
    Finder finder(space, given, draw);
    std::optional<Point> found = finder.find();
    if (found && is_spread && finder.is_repaired) return finder.spread(std::move(*found));
    return found;
}

Point spread_feasible_point(const Space& space, const Point& given, Point start,
                            const DrawValue& draw) {
    return Finder(space, given, draw).spread(std::move(start));
}

FeasibilitySearch search_feasible_point(const Space& space, const Point& given) {
    const DrawValue anywhere = [&](std::uint64_t turn, std::size_t index) {
        const std::uint64_t bits = hashed(hashed(turn) ^ index);
        return value_at(space[index], static_cast<double>(bits >> 11) * 0x1p-53);
    };
    if (std::optional<Point> found = find_feasible_point(space, given, anywhere))
        return {Feasibility::kSome, std::move(*found)};
    FeasibilitySearch search;
    Point combination;
    search.answer = Exhaustion(space, given).look(combination);
    if (search.answer != Feasibility::kSome) return search;
    // What the rules do not read may be anything.
    for (std::size_t i = 0; i < given.size(); ++i)
        if (is_active(given[i])) combination[i] = given[i];
    search.example = find_feasible_point(space, combination, anywhere).value_or(Point());
    if (search.example.empty()) search.answer = Feasibility::kUnknown;
    return search;
}

}  // namespace tune::tuner
