#include "tuner/study/trial/checkpoints.h"

#include <set>

namespace tune::tuner {

std::optional<NeededCheckpoints> needed_checkpoints(const Study& study) {
    const Population& population = study.population();
    if (population.heads().empty()) return std::nullopt;
    std::set<std::uint64_t> needed;
    for (const auto& [member, number] : population.heads()) needed.insert(number);
    if (const Trial* best = study.front().best()) needed.insert(best->number);
    for (const std::set<std::uint64_t>* waiting :
         {&study.trials().running(), &study.trials().queued()})
        for (const std::uint64_t number : *waiting) {
            needed.insert(number);
            const std::optional<Origin>& origin = study.trials().find(number)->origin;
            if (origin && origin->parent) needed.insert(*origin->parent);
        }
    return NeededCheckpoints{.folder = study.identity().id,
                             .from = population.first(),
                             .below = study.trials().size(),
                             .trials = {needed.lower_bound(population.first()), needed.end()}};
}

}  // namespace tune::tuner
