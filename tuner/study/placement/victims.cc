// In their order until it fits, then those back that were not needed, the last one first: what is
// to go last is spared first.

#include "tuner/study/placement/victims.h"

#include <algorithm>

namespace tune::tuner {

std::optional<std::vector<std::size_t>> victims_in(const Room& room, const TrialNeeds& needs,
                                                   int nproc, const std::vector<Part>& parts) {
    Room left = room;
    std::vector<std::size_t> chosen;
    while (!part_in(left, needs, nproc)) {
        if (chosen.size() == parts.size()) return std::nullopt;
        give_back(left, parts[chosen.size()]);
        chosen.push_back(chosen.size());
    }
    for (std::size_t i = chosen.size(); i-- > 0;) {
        Room with = left;
        take(with, parts[chosen[i]]);
        if (!part_in(with, needs, nproc)) continue;
        left = std::move(with);
        chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return chosen;
}

}  // namespace tune::tuner
