// Optuna finds these groups from finished trials (its option group=True splits sets of names until
// each set appears in a trial whole or not at all). Here the conditions are declared, so the groups
// are known before the first trial.

#include "tuner/sampler/layout.h"

#include <algorithm>
#include <map>

namespace tune::tuner {
namespace {

using Key = std::vector<double>;

/// Equal for parameters under equal conditions (conditions are sorted by the name of the parent).
Key key_of(const Parameter& parameter) {
    Key key;
    for (const Condition& condition : parameter.when) {
        key.push_back(static_cast<double>(condition.parent));
        key.push_back(static_cast<double>(condition.any_of.size()));
        key.insert(key.end(), condition.any_of.begin(), condition.any_of.end());
        key.insert(key.end(), {condition.low, condition.high, condition.low_open ? 1.0 : 0.0,
                               condition.high_open ? 1.0 : 0.0});
    }
    return key;
}

}  // namespace

std::vector<Group> groups_of(const Space& space) {
    std::vector<Group> groups;
    std::map<Key, std::size_t> group_at;
    // In order of parents first, a group opens when its first member comes: all parents are before.
    for (const std::size_t index : space.parents_first()) {
        const Parameter& parameter = space[index];
        if (parameter.is_single()) {
            groups.push_back(Group{true, {index}});
            continue;
        }
        const auto [at, is_new] = group_at.emplace(key_of(parameter), groups.size());
        if (is_new) groups.emplace_back();
        groups[at->second].members.push_back(index);
    }
    for (Group& group : groups)
        std::sort(group.members.begin(), group.members.end(),
                  [&](std::size_t a, std::size_t b) { return space[a].name < space[b].name; });
    return groups;
}

std::vector<Group> one_by_one(const std::vector<Group>& groups) {
    std::vector<Group> single;
    for (const Group& group : groups)
        for (const std::size_t index : group.members) single.push_back({group.is_fixed, {index}});
    return single;
}

}  // namespace tune::tuner
