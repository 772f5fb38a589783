// Finds parameters that no point can have because their conditions contradict each other: such a
// parameter is a slip of the study file and would silently never be tried.
//
// Why it is exact. A parameter is active if each of its conditions holds, and a condition holds
// only if its parent is active; so all conditions of all ancestors must hold together. Each
// condition speaks of one parameter, and rules apart the values of different parameters are free of
// each other. Hence the whole can hold if and only if, for each ancestor by itself, one value
// satisfies all conditions on it: if one of them lists values, these are tried; if all are
// comparisons, they are intersected to one interval, which has a value unless it is empty, or one
// point that an open end leaves out, or lies between two values of a grid.
//
// Parents come before children, so a child with one condition is compared with its parent alone.
// The number of conditions that are looked at is bounded; what lies beyond counts as reachable.

#include "tuner/space/reachable.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "tuner/space/error_text.h"
#include "tuner/space/node.h"

namespace tune::tuner {
namespace {

/// Conditions that are looked at in one space: ten thousand parameters below ten thousand others
/// must not take for ever.
constexpr std::size_t kReachableVisitsMax = 1'000'000;

using Conditions = std::vector<const Condition*>;

bool all_hold(const Conditions& conditions, double value) {
    return std::all_of(conditions.begin(), conditions.end(),
                       [&](const Condition* condition) { return condition->holds(value); });
}

/// True if one value of `parent` satisfies all of them.
bool can_hold(const Conditions& conditions, const Parameter& parent) {
    for (const Condition* condition : conditions)
        if (!condition->any_of.empty())
            return std::any_of(condition->any_of.begin(), condition->any_of.end(),
                               [&](double value) { return all_hold(conditions, value); });
    double low = parent.low;
    double high = parent.high;
    for (const Condition* condition : conditions) {
        low = std::max(low, condition->low);
        high = std::min(high, condition->high);
    }
    if (low > high) return false;
    if (parent.step == 0) {
        // Between two ends there is always a value; at one end it depends on who includes it.
        return low < high || all_hold(conditions, low);
    }
    // The least value of the grid from `low` on, or the one after it where `low` is left out.
    const double first = std::floor((low - parent.low) / parent.step);
    for (double steps = first; steps <= first + 2; ++steps) {
        const double value = parent.snap(parent.low + steps * parent.step);
        if (value >= low && value <= high && all_hold(conditions, value)) return true;
    }
    return false;
}

class Search {
public:
    explicit Search(const std::vector<Parameter>& parameters) : parameters_(parameters) {}

    /// The parameter of which too much is asked for `child` to be active.
    std::optional<std::size_t> contradiction(std::size_t child) {
        std::unordered_map<std::size_t, Conditions> asked;
        std::unordered_set<std::size_t> known = {child};
        std::vector<std::size_t> waiting = {child};
        while (!waiting.empty()) {
            const std::size_t at = waiting.back();
            waiting.pop_back();
            for (const Condition& condition : parameters_[at].when) {
                if (++visits_ > kReachableVisitsMax) return std::nullopt;
                asked[condition.parent].push_back(&condition);
                if (known.insert(condition.parent).second) waiting.push_back(condition.parent);
            }
        }
        std::optional<std::size_t> found;
        for (const auto& [parent, conditions] : asked)
            if ((!found || parent < *found) && !can_hold(conditions, parameters_[parent]))
                found = parent;
        return found;
    }

private:
    const std::vector<Parameter>& parameters_;
    std::size_t visits_ = 0;
};

}  // namespace

std::optional<NeverActive> never_active(const std::vector<Parameter>& parameters,
                                        const std::vector<std::size_t>& parents_first) {
    Search search(parameters);
    for (const std::size_t index : parents_first) {
        const std::vector<Condition>& when = parameters[index].when;
        if (when.empty()) continue;
        // A parent's own conditions were looked at before, and never name its child.
        const bool is_alone = when.size() == 1;
        const std::optional<std::size_t> of = !is_alone ? search.contradiction(index)
                                              : can_hold({&when[0]}, parameters[when[0].parent])
                                                  ? std::nullopt
                                                  : std::optional(when[0].parent);
        if (!of) continue;
        const std::string name = in_quotes(parameters[*of].name);
        return NeverActive{
            index, is_alone ? "the condition can never hold: " + name + " has no such value"
                            : "the conditions can never hold together: they, or those of the "
                              "parameters they name, ask for values of " +
                                  name + " that exclude each other"};
    }
    return std::nullopt;
}

Result<void> check_reachable(const Space& space) {
    const auto error = never_active(space.parameters(), space.parents_first());
    if (!error) return {};
    return error_at({}, "space." + space[error->parameter].name + ".when", error->message);
}

}  // namespace tune::tuner
