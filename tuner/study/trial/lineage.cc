#include "tuner/study/trial/lineage.h"

#include <algorithm>

namespace tune::tuner {

std::optional<Steps> steps_of(const Study& study, const Trial& trial) {
    if (!trial.origin) return std::nullopt;
    // The study may have another sampler by now.
    const auto* options = study.config().sampler.get_if<PbtOptions>();
    return steps_of(options != nullptr ? *options : PbtOptions(), trial.origin->generation);
}

std::vector<const Trial*> lineage_of(const Study& study, const Trial& trial,
                                     std::size_t count_max) {
    std::vector<const Trial*> lineage;
    const Trial* at = trial.origin ? &trial : nullptr;
    while (at != nullptr && lineage.size() < count_max) {
        lineage.push_back(at);
        const bool has_parent = at->origin && at->origin->parent;
        // A parent is older than its child, so this ends.
        const bool is_older = has_parent && *at->origin->parent < at->number;
        at = is_older ? study.trials().find(*at->origin->parent) : nullptr;
    }
    std::reverse(lineage.begin(), lineage.end());
    return lineage;
}

}  // namespace tune::tuner
